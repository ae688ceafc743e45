-- Gives up what a claim holds here, and refuses every attempt at it that is still under way.
-- KEYS: the name's cell
-- ARGV: id
-- returns: 1 if it was held, else 0
-- @include "vote-node.lua"
-- @include "vote-cell.lua"
local cell, gone = KEYS[1], KEYS[1] .. ':x'
read(cell)
local mine = id == ARGV[1]
withdrawn = format('%.0f', now + 60000)
call('ZREMRANGEBYSCORE', gone, '-inf', format('%.0f', now))
call('ZADD', gone, withdrawn, ARGV[1])
call('PEXPIRE', gone, 60000)
if id and not mine then
  hold(cell)
else
  free(cell, mine)
end
return mine and 1 or 0
