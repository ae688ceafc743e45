-- Keeps many claims, holders and waiters mixed. The names may differ; in a Cluster they share a slot.
-- KEYS: header, index, records of each claim; with durable fencing also its mark
-- ARGV[1]: mode, or an empty string; see lib/mode.lua
-- ARGV[2…]: of each claim its id and what it asks for: <ttl> <patience> <tokens>
-- returns: an array of: 1 renewed, 2 renewed with somebody behind, 0 lost, q queued,
--          h<token> <count> <contended 0 or 1> held
-- @include "open.lua"
local mode = ARGV[1]
-- @include "mode.lua"
-- @include "state.lua"
-- @include "holders.lua"
-- @include "queue.lua"

local at_digits = time[1] .. sub('00000' .. time[2], -6)

local function renew(id, lease, silence, tokens)
  -- As in remove.lua: whoever holds a lock keeps it also while the server's memory is full.
  call('PEXPIRE', header, KEEP_HEADER)
  if durable then call('PERSIST', header) end
  load(value)
  forgetExpired()
  local score = scoreOf(id)
  local first, number = keepHolder(id, score, lease, tonumber(tokens))
  if first then
    if tokens == '0' then return waiting > 0 and 2 or 1 end
    return held(first, number)
  end
  local answer = keepWaiter(id, score, lease, silence)
  if answer then return answer end
  promote()
  return 0
end

local answers = {}
for i = 1, (#ARGV - 1) / 2 do
  if i > 1 then
    header, index, records = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
    value = call('GET', header)
  end
  local id = ARGV[2 * i]
  local lease, silence, tokens = match(ARGV[2 * i + 1], '^(%d+) (%d+) (%d+)$')
  local done
  if value and tokens == '0' and not durable then
    -- The common case: it holds all of the capacity, and nobody waits.
    local token, since, holder, rest, before, tail =
      match(value, '^(%d+) (%d+) (%S+) (%d+ %d+ %d+) (%d+) (.*)$')
    if holder == id and since - since % 1000 + before * 1000 > micros then
      local kept = token .. ' ' .. at_digits .. ' ' .. id .. ' ' .. rest .. ' ' .. lease .. ' ' .. tail
      done = not redis.pcall('SET', header, kept, 'PX', KEEP_HEADER).err
    end
  end
  if done then
    answers[i] = 1
  else
    answers[i] = renew(id, lease, silence, tokens)
    save()
  end
end
return answers
