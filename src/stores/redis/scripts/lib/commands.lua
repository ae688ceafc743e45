-- What can be asked, whatever the state of the name: the same rule as src/core/claim-queue.ts, step by step.

local function claim(id, terms, onlyTry)
  local tokens, weight, wanted, lease, silence, who = match(terms, '^(%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
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
  if onlyTry then return untilEnd('b') end
  enqueue(id, terms)
  if waiting == 1 then tellHolders() end
  return untilEnd('q')
end

local function renew(id, terms)
  local lease, silence, tokens = match(terms, '^(%d+) (%d+) (%d+)$')
  tokens = tonumber(tokens)
  local score = scoreOf(id)
  local first, number = keepHolder(id, score, lease, tokens)
  if first then
    if tokens == 0 then return waiting > 0 and 2 or 1 end
    return held(first, number)
  end
  local answer = keepWaiter(id, score, lease, silence)
  if answer then return answer end
  promote()
  return 0
end

local function remove(id)
  if id == holder then
    holder, used = nil, 0
    return 1
  end
  local score = scoreOf(id)
  if not score or score < 0 then return 0 end
  if score >= SHARED then
    removeShared(id)
  elseif liveWaiter(id, score) then
    dequeue(id)
  else
    return 0
  end
  return 1
end

local function release(id, following)
  local released = remove(id)
  if not following then
    promote()
    return released
  end
  local nextKind, nextId, terms = match(following, '^([qt])(%S+) (.*)$')
  local score = scoreOf(nextId)
  local known = nextId == holder or (score and (score > 0 or -score > now))
  if known or not agree(tonumber(match(terms, '^%d+ %d+ (%d+)'))) then
    promote()
    return { released, claim(nextId, terms, nextKind == 't') }
  end
  -- In line before the others are granted, so that they learn at once that somebody waits behind them.
  enqueue(nextId, terms)
  local alone = waiting == 1
  local answer = promote(nextId)
  if not answer and alone then tellHolders() end
  return { released, answer or untilEnd('q') }
end

local function withdraw(id)
  local released = remove(id)
  startIndex()
  withdrawn = now + 60000
  call('ZREMRANGEBYSCORE', index, format('-%.0f', now), '(0')
  call('ZADD', index, format('-%.0f', withdrawn), id)
  keepUntil(withdrawn)
  promote()
  return released
end

-- The holder of everything becomes one of those that share. Its block is still the last one that was given to anybody.
local function share()
  local id = holder
  startIndex()
  holder, used, shared = nil, 1, shared + 1
  call('HSET', records, id, recordOfHolder(1, owner))
  keepInIndex(id, ends)
end

local function downgrade(id)
  -- A waiter whose turn has come holds it, so that a repeated command finds what the first one found.
  promote()
  if id == holder then
    if capacity > 1 then share() end
  else
    local score = scoreOf(id)
    if not score or score < SHARED then return 0 end
    local block, weight, who = match(call('HGET', records, id) or '', '^(%d+ %d+) (%d+) (.*)$')
    if not block then
      removeShared(id)
      return 0
    end
    used = used - weight + 1
    call('HSET', records, id, format('%s 1 %s', block, who))
  end
  promote()
  return 1
end
