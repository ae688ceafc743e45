-- The common cases: one holder that takes everything, and nobody else. They touch only the header. Not functions, but
-- lines in the scripts themselves, and with as few new strings as possible: on a server that is woken up for each
-- command, to make one costs as much as a call of Redis.
-- Leaves `answer` nil if it is not such a case, if the server's memory is full, if the key is somebody else's, or if it may
-- not be read: then the long way is taken, which can fail without harm to the other commands of a script.
if kind == 'Q' or kind == 'T' or kind == 'K' then
  -- Claim of the whole capacity, or more tokens for the one that has it.
  local fields = redis.pcall('HGETALL', header)
  local token, count
  if fields.err or fields[5] then
    token = nil
  elseif kind == 'K' then
    if fields[3] == id and fields[1] == 'f' and call('PTTL', header) > LIVE then
      token, count = match(fields[2], '^(%d+) (%d+)$')
    end
  elseif not fields[1] then
    token, count = 0, 1
  elseif not fields[3] then
    token, count = match(fields[2], '^(%d+) (%d+)$')
  end
  if token then
    time = time or call('TIME')
    local micros = time[2]
    if #micros < 6 then micros = sub('00000' .. micros, -6) end
    answer = time[1] .. micros
    local following = token + count
    if following > answer + 0 then answer = string.format('%.0f', following) end
    local block, done
    if kind == 'K' then
      block = answer .. ' ' .. match(terms, '%d+$')
      done = redis.pcall('HSET', header, 'f', block)
      answer = 'h' .. block .. ' 0'
    else
      done = redis.pcall('HSET', header, 'f', answer .. ' ' .. match(terms, '^%d+'), id, terms)
    end
    if type(done) == 'table' then answer = nil else call('PEXPIRE', header, life) end
  end
elseif kind == 'r' then
  -- Release: only the fence is left.
  if call('PTTL', header) > LIVE and redis.pcall('HDEL', header, id) == 1 then answer = 1 end
elseif kind == 'k' then
  -- Renewal without new tokens.
  if call('PTTL', header) > LIVE and redis.pcall('HEXISTS', header, id) == 1 then
    call('PEXPIRE', header, life)
    answer = 1
  end
end
