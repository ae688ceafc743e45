-- What a node knows of a name is one string; src/core/vote-cell.ts says what it means.
--
--   held   <fence> <withdrawn> <waiting> <ends> <id> <attempt> <created> <token> <count> <owner>
--   idle   <fence> <withdrawn> <waiting>
--
-- `withdrawn`: until when the withdrawn ids in the third key count. `waiting`: 1 if somebody in the second key wants to
-- be told. The string outlives the lease by a day; after that the clock is far beyond every token in it.
local KEPT = 86400000
local fence, withdrawn, waiting, ends, id, attempt, created, token, count, owner

local function read(cell)
  fence, withdrawn, waiting, id = 0, '0', '0', nil
  local value = call('GET', cell)
  if not value then return false end
  local held
  fence, withdrawn, waiting, held = match(value, '^(%d+) (%d+) ([01])(.*)$')
  fence = tonumber(fence)
  if held ~= '' then
    ends, id, attempt, created, token, count, owner = match(held, '^ (%d+) (%S+) (%d+) (%d+) (%d+) (%d+) (.*)$')
    if tonumber(ends) <= now then id = nil end
  end
  -- A withdrawal may have left something where no vote ever was.
  return fence > 0
end

local function hold(cell, ttl)
  local value = format('%.0f %s %s %.0f %s %s %s %s %s %s', fence, withdrawn, waiting, now + ttl, id, attempt, created,
    token, count, owner)
  call('SET', cell, value, 'PX', format('%.0f', ttl + KEPT))
end

local function isWithdrawn(key, wanted)
  if withdrawn == '0' or tonumber(withdrawn) <= now then return false end
  local till = call('ZSCORE', key, wanted)
  return till and tonumber(till) > now
end

local function following()
  return format('%.0f', math.max(fence + 1, time[1] * 1000000))
end

local function channel(cell, session)
  return match(cell, '^(.*):{') .. ':s:' .. session
end

local function free(cell, interested, tell)
  if tell and waiting == '1' then
    -- Only the first one that can hear it: with all of them at once, the votes would split.
    repeat
      local first = call('ZPOPMIN', interested)
    until not first[1] or call('PUBLISH', channel(cell, first[1]), 'f ' .. cell) > 0
    if call('EXISTS', interested) == 0 then waiting = '0' end
  end
  call('SET', cell, format('%.0f %s %s', fence, withdrawn, waiting), 'PX', KEPT)
end
