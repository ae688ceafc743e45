-- The header of a name is one string, so that an uncontended lock costs one GET and one SET. A hash in its place was
-- measured at 1.3 times the server's time.
--
--   held        <id> <at> <stamp> <token> <count> <weight> <capacity> <ttl> <patience> <owner>
--   idle         <stamp> <token> <count>; short, for it is kept long after the name was last used
--   with more   +<used> <capacity> <waiting> <shared> <seq> <withdrawn> <kept>| and then one of the above
--
-- "Held" is a holder that takes all of the capacity. Its lease ends `ttl` ms after `at`, the µs of its last renewal.
-- `token` and `count` are the last block of tokens that was given to anybody: the fence is its last one.
-- `stamp` tells when Redis was last told to keep the header, in thousands of seconds: to tell it every time would
-- cost as much again as the rest of the SET.
-- "More" says what stands in the other two keys of the name; see state.lua.
local call, match, sub, format = redis.call, string.match, string.sub, string.format

-- A lease lasts a day at most; the header a day longer, so that the fence outlives every lease by that much.
local KEEP_HEADER = '172800000'

local time = call('TIME')
local micros = time[1] * 1000000 + time[2]
local stamp = sub(time[1], 1, 7)

-- The keys of the name that a command is about, and what its header says.
local header, index, records, value = KEYS[1], KEYS[2], KEYS[3], nil
