-- The line of waiters, and what sessions are told.

-- One channel a session, whatever the number of names.
local function channelOf(id)
  return match(header, '^(.*){') .. 's:' .. match(id, '^[^.]*')
end

-- Whether the session of a waiter listens at this server. It is asked for, and not learned from how many heard the grant: a
-- grant that is told before it is made reaches those who listen at a replica, whom the count leaves out, and the count
-- takes those who listen to everything for a waiter. Where nobody may ask, everybody listens. Whose owner begins with this
-- sign cannot be told anything, and asks: it is granted in its turn, and finds out when it asks next.
local ASKS = '\1'
local function listens(id, who)
  if everyoneListens or sub(who, 1, 1) == ASKS then return true end
  local known = redis.pcall('PUBSUB', 'NUMSUB', channelOf(id))
  return known.err ~= nil or known[2] > 0
end

-- What is to be said when everything is written: channel and message by turns. The name travels as the header's key, last in
-- the message.
local messages

local function tell(id, message)
  messages[#messages + 1] = channelOf(id)
  messages[#messages + 1] = message .. ' ' .. header
end

-- What was done is done, also if it may not be told: the one whom it concerns will ask.
local function speak()
  for i = 1, #messages, 2 do redis.pcall('PUBLISH', messages[i], messages[i + 1]) end
end

local function tellHolders()
  if holder then tell(holder, 'c ' .. holder) end
  if shared == 0 then return end
  for _, id in ipairs(call('ZRANGEBYSCORE', index, FIRST_SHARED, '+inf')) do
    tell(id, 'c ' .. id)
  end
end

local function enqueue(id, terms)
  local silence = match(terms, '^%d+ %d+ %d+ %d+ (%d+)')
  startIndex()
  waiting, seq = waiting + 1, seq + 1
  call('HSET', records, id, format('%.0f %s', now + silence, terms))
  call('ZADD', index, seq, id)
  keepUntil(now + silence)
end

local function dequeue(id)
  waiting = waiting - 1
  call('ZREM', index, id)
  call('HDEL', records, id)
end

-- Grants from the head of the line while it fits. The asker gets its grant as the answer, for its full ttl; the others
-- are told, and have until their patience ends to pick theirs up. Who cannot be told keeps its place and is passed over.
-- Returns the asker's answer or nil, and whether somebody is left who must go first.
local function promote(asker)
  local answer
  local passed = 0
  while waiting > 0 do
    local head = call('ZRANGEBYSCORE', index, '(' .. passed, BEFORE_SHARED, 'WITHSCORES', 'LIMIT', 0, 1)
    local id = head[1]
    if not id then
      -- Either only the passed-over are left, or the index was evicted or ran out.
      if passed == 0 then waiting = 0 end
      return answer, false
    end
    local record = call('HGET', records, id) or '0 0 0 0 0 0 '
    local till, tokens, weight, lease, silence, who = match(record, '^(%d+) (%d+) (%d+) %d+ (%d+) (%d+) (.*)$')
    weight = tonumber(weight)
    if tonumber(till) <= now then
      dequeue(id)
    elseif used + weight > capacity then
      return answer, true
    elseif id == asker then
      dequeue(id)
      grant(id, weight, tokens, lease, who)
      answer = held(token, count)
    elseif listens(id, who) then
      dequeue(id)
      grant(id, weight, tokens, math.min(lease, silence), who)
      tell(id, format('g %s %.0f %d %d', id, token, count, waiting > 0 and 1 or 0))
    else
      passed = head[2]
    end
  end
  return answer, false
end

-- A name has one capacity while anybody holds it or waits for it.
local function agree(wanted)
  if not holder and shared == 0 and waiting == 0 then capacity = wanted end
  return capacity == wanted
end

-- The record of a waiter, or nil. One that was silent for too long is none.
local function liveWaiter(id, score)
  if not score or score < 1 or score >= SHARED then return nil end
  local record = call('HGET', records, id)
  if record and tonumber(match(record, '^%d+')) > now then return record end
  dequeue(id)
end

-- A waiter says that it is still there, and what it counts on from now on. Nil if it is not in the line.
local function keepWaiter(id, score, lease, silence)
  local record = liveWaiter(id, score)
  if not record then return nil end
  local what, who = match(record, '^%d+ (%d+ %d+ %d+) %d+ %d+ (.*)$')
  call('HSET', records, id, format('%.0f %s %s %s %s', now + silence, what, lease, silence, who))
  keepUntil(now + silence)
  return promote(id) or untilEnd('q')
end
