-- Accepts another node's higher token for a claim that holds the name here since before that.
-- KEYS: the name's cell
-- ARGV: id, attempt, base, token, count
-- returns: c (confirmed), l (lost), f (fenced)
-- @include "vote-node.lua"
-- @include "vote-cell.lua"
read(KEYS[1])
if id ~= ARGV[1] or attempt ~= ARGV[2] then return 'l' end
if tonumber(created) > tonumber(ARGV[3]) then return 'f' end
if tonumber(token) < tonumber(ARGV[4]) then token, count = ARGV[4], ARGV[5] end
fence = math.max(fence, ARGV[4] + ARGV[5] - 1)
hold(KEYS[1])
return 'c'
