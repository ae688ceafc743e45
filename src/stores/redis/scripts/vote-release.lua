-- Gives up what a claim holds here. The fence stays.
-- KEYS: the name's cell
-- ARGV: id, attempt or 0 for any, 1 to tell who is interested
-- returns: 1 if it was held, else 0
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
local first, by, number, several = string.match(value, '^(%d+) %d+ (%S+) (%d+) (%d+) ')
-- A cell lives a day longer than the lease in it.
if by == ARGV[1] and number == ARGV[2] and redis.call('PTTL', KEYS[1]) > 86400000 then
  if several ~= '1' then first = string.format('%.0f', first + several - 1) end
  redis.call('SET', KEYS[1], first, 'PX', 86400000)
  return 1
end
-- @include "vote-node.lua"
-- @include "vote-cell.lua"
read(KEYS[1])
if id ~= ARGV[1] or (ARGV[2] ~= '0' and attempt ~= ARGV[2]) then return 0 end
free(KEYS[1], ARGV[3] == '1')
return 1
