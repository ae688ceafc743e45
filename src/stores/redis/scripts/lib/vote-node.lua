-- The server's time, and whether the node may vote: one that has no memory of votes has to look on for a while, until
-- nothing that it may have forgotten can still be held. `seen`: when it was first found empty, or since
-- when it is known to have been; 0 if somebody said that it is new.
local call, match, format = redis.call, string.match, string.format
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function onProbation(node, wait)
  local seen = call('GET', node)
  if not seen then
    seen = wait == 0 and '0' or format('%.0f', now)
    call('SET', node, seen)
  elseif tonumber(seen) > now then
    -- The clock was set back.
    seen = format('%.0f', now)
    call('SET', node, seen)
  end
  local left = seen + wait - now
  return left > 0 and format('n%.0f', left) or nil
end

local function checkLayout(text)
  if text == '1' then return end
  error('HFLAYOUT the votes are kept in layout ' .. text .. ', and this version of holdfast knows layout 1: update it', 0)
end
