-- Gives up what a claim holds here, and refuses every attempt at it that is still under way.
-- KEYS: the name's cell, who is interested, withdrawn ids
-- ARGV: id
-- returns: 1 if it was held, else 0
-- @include "vote-node.lua"
-- @include "vote-cell.lua"
local cell, gone = KEYS[1], KEYS[3]
read(cell)
local mine = id == ARGV[1]
withdrawn = format('%.0f', now + 60000)
call('ZREMRANGEBYSCORE', gone, '-inf', format('%.0f', now))
call('ZADD', gone, withdrawn, ARGV[1])
call('PEXPIRE', gone, 60000)
if id and not mine then
  hold(cell, ends - now)
else
  free(cell, KEYS[2], mine)
end
return mine and 1 or 0
