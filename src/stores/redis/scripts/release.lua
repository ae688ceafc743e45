-- Gives a claim up, held or queued, and grants whoever is next; may queue a new claim in the same step.
-- KEYS: header, index, records; with durable fencing also its mark
-- ARGV[1]: the claim's id
-- ARGV[2]: mode, or an empty string; may be left out if nothing follows. See lib/mode.lua
-- ARGV[3]: id of the next claim, if any
-- ARGV[4]: what it asks for, as in claim.lua
-- returns: 1 released, 0 not held; with a next claim an array of that and the answer of claim.lua
-- @include "open.lua"
local id, mode, following = ARGV[1], ARGV[2], ARGV[3]

-- The common case: it holds all of the capacity, and nobody waits.
if value and not following and mode ~= 'd' then
  local token, at, holder, count, ttl = match(value, '^(%d+) (%d+) (%S+) %d+ %d+ (%d+) (%d+)')
  if holder == id and at - at % 1000 + ttl * 1000 > micros then
    -- Refused when the server's memory is full: then the longer way goes on.
    if not redis.pcall('SET', header, token .. ' ' .. count, 'KEEPTTL').err then return 1 end
  end
end

-- @include "mode.lua"
-- @include "state.lua"
-- @include "holders.lua"
-- @include "queue.lua"
-- @include "claim.lua"
-- @include "remove.lua"
load(value)
forgetExpired()
local released = remove(id)
local answer
if following then
  local record = ARGV[4]
  local score = scoreOf(following)
  local known = following == holder or (score and (score > 0 or -score > now))
  if known or not agree(tonumber(match(record, '^%d+ (%d+)'))) then
    promote()
    answer = claim(following, record, 'q')
  else
    -- In line before the others are granted, so that they learn at once that somebody waits behind them.
    enqueue(following, record)
    local alone = waiting == 1
    answer = promote(following)
    if not answer and alone then tellHolders() end
    answer = answer or 'q'
  end
else
  promote()
end
save()
if answer then return { released, answer } end
return released
