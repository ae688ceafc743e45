-- The header of a name is one hash, which is there for as long as anybody may ask for the name's fence:
--
--   f       <token> <count>: the last block of tokens that was given to anybody; its last one is the fence
--   <id>    <tokens> <weight> <capacity> <ttl> <patience> <owner>: a holder that takes all of the capacity, and nobody
--           else is here. It is a field of its own so that giving it up is one HDEL, which compares and deletes: no
--           script is needed for that, and a script costs the server five times as much
--   m       <used> <capacity> <waiting> <shared> <seq> <withdrawn> <kept>: somebody else is here; see state.lua
--   h       <id> and the rest as above: the holder of everything while there is an m. HDEL does not find it then, and a
--           script has to be asked, which grants to the next in line
--
--   v       the layout, if it is not this one, which is 1. A script that finds a later one does nothing: see
--           docs/adr/0005-layouts.md
--
-- The lease of a holder of everything is measured by Redis itself: the header's time to live is that of the lease and a
-- day. So the fence outlives the lease by a day, and whether the lease is over is one number away, where a time kept in
-- the header would have to be read from digits and compared with another one.
local call, match, sub = redis.call, string.match, string.sub

-- The keys of the name that a command is about, and the server's time once somebody has asked.
local header, index, records, time = KEYS[1], KEYS[2], KEYS[3], nil
-- A header that lives for longer than this is that of a lease that has not ended.
local LIVE = 86400000
