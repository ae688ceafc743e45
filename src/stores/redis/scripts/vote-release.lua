-- Gives up what a claim holds here. The fence stays.
-- KEYS: the name's cell, who is interested
-- ARGV: id, attempt or 0 for any, 1 to tell who is interested
-- returns: 1 if it was held, else 0
-- @include "vote-node.lua"
-- @include "vote-cell.lua"
read(KEYS[1])
if id ~= ARGV[1] or (ARGV[2] ~= '0' and attempt ~= ARGV[2]) then return 0 end
free(KEYS[1], KEYS[2], ARGV[3] == '1')
return 1
