-- Gives up what a claim holds here. The fence stays. Where nobody else is interested, HDEL does the same for less.
-- KEYS: the name's cell
-- ARGV: id, attempt or 0 for any, 1 to tell who is interested
-- returns: 1 if it was held, else 0
-- @include "vote-node.lua"
-- @include "vote-cell.lua"
read(KEYS[1])
if id ~= ARGV[1] or (ARGV[2] ~= '0' and attempt ~= ARGV[2]) then return 0 end
free(KEYS[1], ARGV[3] == '1')
return 1
