-- Shows who holds a name and who waits for it.
-- KEYS: header, index, records; or the header alone, if the others cannot be asked for now
-- ARGV: none
-- returns: capacity, number of holders, then of each holder id, owner behind a =, weight, token, ms left,
--          then of each waiter id, owner behind a =, weight, ms left
-- @include "header.lua"
-- @include "state.lua"
load()
if not index and waiting + shared > 0 then return redis.error_reply('TRYAGAIN the slot is being moved') end
local answer, holders = { capacity, 0 }, 0
local function add(...)
  for _, fact in ipairs({ ... }) do answer[#answer + 1] = fact end
end
if holder and ends > now then
  holders = 1
  add(holder, '=' .. owner, capacity, format('%.0f', token), format('%.0f', ends - now))
end
local members = {}
if waiting + shared > 0 then members = call('ZRANGEBYSCORE', index, 1, '+inf', 'WITHSCORES') end
for i = 1, #members, 2 do
  local id, till = members[i], members[i + 1] - SHARED
  local record = till >= 0 and till > now and call('HGET', records, id)
  if record then
    local first, weight, who = match(record, '^(%d+) %d+ (%d+) (.*)$')
    holders = holders + 1
    add(id, '=' .. who, tonumber(weight), first, format('%.0f', till - now))
  end
end
for i = 1, #members, 2 do
  local id = members[i]
  local record = tonumber(members[i + 1]) < SHARED and call('HGET', records, id)
  if record then
    local till, weight, who = match(record, '^(%d+) %d+ (%d+) %d+ %d+ %d+ (.*)$')
    if tonumber(till) > now then add(id, '=' .. who, tonumber(weight), format('%.0f', till - now)) end
  end
end
answer[2] = holders
return answer
