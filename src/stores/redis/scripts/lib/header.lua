-- The header of a name is one string, so that an uncontended lock costs one GET and one SET. A hash in its place was
-- measured at 1.3 times the server's time.
--
--   held        <id> <token> <count> <weight> <capacity> <ttl> <patience> <owner>
--   idle         <token> <count>
--   with more   +<used> <capacity> <waiting> <shared> <seq> <withdrawn> <kept>| and then one of the above
--
-- "Held" is a holder that takes all of the capacity. Its lease is measured by Redis itself: the header's time to live is
-- that of the lease and a day. So the fence outlives the lease by a day, and whether the lease is over is one number
-- away, where a time kept in the header would have to be read from digits and compared with another one.
-- `token` and `count` are the last block of tokens that was given to anybody: the fence is its last one.
-- "More" says what stands in the other two keys of the name; see state.lua.
local call, match, sub = redis.call, string.match, string.sub

-- The keys of the name that a command is about, what its header says, and the server's time once somebody has asked.
local header, index, records, value, time = KEYS[1], KEYS[2], KEYS[3], nil, nil
-- A header that lives for longer than this is that of a lease that has not ended.
local LIVE = 86400000
