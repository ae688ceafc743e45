-- How every script on one name begins: what the header says, and the server's clock.
--
-- The header is one string, so that an uncontended lock costs one GET and one SET. A hash was measured at 1.3 times
-- the server's time: HMGET and HSET work a field at a time, and need a PEXPIRE besides.
--
--   idle        <token> <count>
--   held        <token> <at> <id> <weight> <capacity> <count> <ttl> <patience> <owner>
--   with more   +<used> <capacity> <waiting> <shared> <seq> <withdrawn> <kept> <idle or held>
--
-- "Held" is a holder that takes all of the capacity. Its lease ends `ttl` ms after `at`, the µs of its last renewal.
-- `token` and `count` are the last block of tokens that was given to anybody: the fence is its last one.
-- "More" says what stands in the other two keys of the name; see state.lua.
local call, match, sub = redis.call, string.match, string.sub
local header = KEYS[1]
local value = call('GET', header)
local time = call('TIME')
local micros = time[1] * 1000000 + time[2]
