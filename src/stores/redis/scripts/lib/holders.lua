-- Holders: granting, keeping, forgetting.

-- The shared holder whose lease ends first, and when.
local function firstToEnd()
  local first = call('ZRANGEBYSCORE', index, FIRST_SHARED, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if first[1] then return first[1], first[2] - SHARED end
end

-- An answer that says when a lease could end, if there is one.
local function untilEnd(answer)
  local _, first
  if holder then
    first = ends
  elseif shared > 0 then
    _, first = firstToEnd()
  end
  return first and format('%s%.0f', answer, first - now) or answer
end

local function removeShared(id)
  used = used - (match(call('HGET', records, id) or '0 0 0', '^%d+ %d+ (%d+)'))
  shared = shared - 1
  -- Whatever became of a record that was evicted: nobody holds, so nothing is held.
  if shared == 0 then used = 0 end
  call('ZREM', index, id)
  call('HDEL', records, id)
end

local function forgetExpired()
  if holder and ends <= now then
    holder, used = nil, 0
  end
  if withdrawn > 0 and withdrawn <= now then
    call('ZREMRANGEBYSCORE', index, '-inf', '(0')
    withdrawn = 0
  end
  while shared > 0 do
    local id, first = firstToEnd()
    if not id then
      -- The index was evicted or ran out: so did every lease in it.
      shared, used = 0, 0
    elseif first <= now then
      removeShared(id)
    else
      return
    end
  end
end

-- Reserves a block of tokens. With durable fencing the mark is the counter, of all names: it needs no clock, and whoever
-- loses the one has lost the other. A process with the other fencing may have given larger tokens for this name.
local function take(tokens)
  local following = token + count
  count = tonumber(tokens)
  if durable then
    token = call('INCRBY', KEYS[4], tokens) - count + 1
    if token < following then
      call('INCRBY', KEYS[4], format('%.0f', following - token))
      token = following
    end
  else
    token = math.max(following, micros)
  end
end

local function keepInIndex(id, till)
  call('ZADD', index, format('%.0f', SHARED + till), id)
  keepUntil(till)
end

local function recordOfHolder(weight, who)
  return format('%.0f %d %d %s', token, count, weight, who)
end

local function grant(id, weight, tokens, lease, who)
  take(tokens)
  used = used + weight
  if weight == capacity then
    holder, owner, ends, endsAnew = id, who, now + lease, true
    return
  end
  startIndex()
  shared = shared + 1
  call('HSET', records, id, recordOfHolder(weight, who))
  keepInIndex(id, now + lease)
end

local function held(first, number)
  return format('h%.0f %d %d', first, number, waiting > 0 and 1 or 0)
end

-- What an id is: its score in the index, or nil. The holder of everything is not in there.
local function scoreOf(id)
  if waiting + shared == 0 and withdrawn == 0 then return nil end
  return tonumber(call('ZSCORE', index, id) or nil)
end

-- Gives a holder `lease` ms from now, and a new block of tokens if it asks for any. Returns its block; nil if the id
-- holds nothing.
local function keepHolder(id, score, lease, tokens)
  if id == holder then
    ends, endsAnew = now + lease, true
    if tokens > 0 then take(tokens) end
    return token, count
  end
  if not score or score < SHARED then return nil end
  local first, number, weight, who = match(call('HGET', records, id) or '', '^(%d+) (%d+) (%d+) (.*)$')
  if not first then return removeShared(id) end
  keepInIndex(id, now + lease)
  if tokens == 0 then return tonumber(first), tonumber(number) end
  take(tokens)
  call('HSET', records, id, recordOfHolder(weight, who))
  return token, count
end
