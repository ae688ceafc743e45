-- What a node knows of a name is one string; src/core/vote-cell.ts says what it means.
--
--   held        <token> <created> <id> <attempt> <count> <owner>
--   idle        <fence>
--   with more   +<withdrawn> <waiting>| and then one of the above
--
-- While it is held, the fence is the last token of the block. The lease is measured by Redis itself: the string lives a
-- day longer, and after that the clock is far beyond every token in it.
-- `withdrawn`: until when the ids in `<cell>:x` count. `waiting`: 1 if somebody in `<cell>:w` wants to be told.
local KEPT = 86400000
local fence, withdrawn, waiting, left, id, attempt, created, token, count, owner

local function read(cell)
  fence, withdrawn, waiting, id = 0, '0', '0', nil
  local value = call('GET', cell)
  if not value then return false end
  local till, some, rest = match(value, '^%+(%d+) ([01])|(.*)$')
  if till then
    value, waiting = rest, some
    if tonumber(till) > now then withdrawn = till end
  end
  token, created, id, attempt, count, owner = match(value, '^(%d+) (%d+) (%S+) (%d+) (%d+) (.*)$')
  if id then
    fence = token + count - 1
    left = call('PTTL', cell) - KEPT
    if left <= 0 then id = nil end
  else
    fence = tonumber(value)
  end
  -- A withdrawal may have left something where no vote ever was.
  return fence > 0
end

local function withMore(value)
  if withdrawn == '0' and waiting == '0' then return value end
  return '+' .. withdrawn .. ' ' .. waiting .. '|' .. value
end

-- Without a ttl the lease ends when it would have.
local function hold(cell, ttl)
  local value = withMore(table.concat({ token, created, id, attempt, count, owner }, ' '))
  if ttl then
    call('SET', cell, value, 'PX', format('%.0f', ttl + KEPT))
  else
    call('SET', cell, value, 'KEEPTTL')
  end
end

local function isWithdrawn(cell, wanted)
  if withdrawn == '0' then return false end
  local till = call('ZSCORE', cell .. ':x', wanted)
  return till and tonumber(till) > now
end

local function following()
  return format('%.0f', math.max(fence + 1, time[1] * 1000000))
end

local function channel(cell, session)
  return match(cell, '^(.*):{') .. ':s:' .. session
end

local function free(cell, tell)
  if tell and waiting == '1' then
    -- Only the first one that can hear it: with all of them at once, the votes would split.
    local interested = cell .. ':w'
    repeat
      local first = call('ZPOPMIN', interested)
    until not first[1] or call('PUBLISH', channel(cell, first[1]), 'f ' .. cell) > 0
    if call('EXISTS', interested) == 0 then waiting = '0' end
  end
  call('SET', cell, withMore(format('%.0f', fence)), 'PX', KEPT)
end
