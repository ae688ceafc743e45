-- Who holds a name here.
-- KEYS: the name's cell
-- ARGV: none
-- returns: nothing, or id, attempt, owner, token and the milliseconds that are left
-- @include "vote-node.lua"
-- @include "vote-cell.lua"
read(KEYS[1])
if not id then return {} end
return { id, attempt, owner, token, format('%.0f', left) }
