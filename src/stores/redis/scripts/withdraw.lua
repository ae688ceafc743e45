-- Removes a claim whose fate is unknown and refuses its id for a minute, so that a late copy of its request is harmless.
-- KEYS: header, index, records; with durable fencing also its mark
-- ARGV[1]: the claim's id
-- ARGV[2]: mode, if not the usual one; see lib/mode.lua
-- returns: 1 released, 0 not held
-- @include "open.lua"
local mode = ARGV[2]
-- @include "mode.lua"
-- @include "state.lua"
-- @include "holders.lua"
-- @include "queue.lua"
-- @include "remove.lua"
load(value)
forgetExpired()
local released = remove(ARGV[1])
startIndex()
withdrawn = now + 60000
call('ZREMRANGEBYSCORE', index, format('-%.0f', now), '(0')
call('ZADD', index, format('-%.0f', withdrawn), ARGV[1])
keepUntil(withdrawn)
promote()
save()
return released
