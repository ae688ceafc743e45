-- A claim, whatever the state of the name.
local function claim(id, record, whenBusy)
  local weight, wanted, tokens, lease, silence, who = match(record, '^(%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
  local score = scoreOf(id)

  -- Here already: the driver or the runtime sent it again.
  local first, number = keepHolder(id, score, lease, 0)
  if first then return held(first, number) end
  local answer = keepWaiter(id, score, lease, silence)
  if answer then return answer end

  if score and score < 0 and -score > now then return 'b' end

  -- Those ahead first. If all of them are granted, or only the unreachable are left, it is the newcomer's turn.
  local _, blocked = promote()
  if not agree(tonumber(wanted)) then return 'm' .. capacity end
  weight = tonumber(weight)
  if not blocked and used + weight <= capacity then
    grant(id, weight, tokens, lease, who)
    return held(token, count)
  end
  if whenBusy == 't' then
    local ends
    if holder then ends = holderEnds() else _, ends = firstToEnd() end
    return ends and format('b%.0f', ends - now) or 'b'
  end
  enqueue(id, record)
  if waiting == 1 then tellHolders() end
  return 'q'
end
