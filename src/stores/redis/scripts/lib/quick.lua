-- The common cases: one holder that takes everything, and nobody else. They touch only the header. Not functions, but
-- lines in the scripts themselves, and with as few new strings as possible: on a server that is woken up for each
-- command, to make one costs as much as a call of Redis.
-- Leaves `answer` nil if it is not such a case, or if the server's memory is full: then the long way is gone.
if kind == 'Q' or kind == 'T' then
  -- Claim of the whole capacity.
  local token, count = 0, 1
  if value then
    token, count = match(value, '^ (%d+) (%d+)$')
    if not token and call('PTTL', header) <= LIVE then
      token, count = match(value, '^[^ +]%S* (%d+) (%d+) ')
    end
  end
  if token then
    time = time or call('TIME')
    local micros = time[2]
    if #micros < 6 then micros = sub('00000' .. micros, -6) end
    answer = time[1] .. micros
    local following = token + count
    if following > answer + 0 then answer = string.format('%.0f', following) end
    if redis.pcall('SET', header, id .. ' ' .. answer .. ' ' .. terms, 'PX', life).err then answer = nil end
  end
elseif kind == 'r' then
  -- Release: only the fence is left.
  local n = #id
  if value and sub(value, 1, n) == id and call('PTTL', header) > LIVE then
    local fence = match(value, '^ %d+ %d+', n + 1)
    if fence and not redis.pcall('SET', header, fence, 'KEEPTTL').err then answer = 1 end
  end
elseif kind == 'k' then
  -- Renewal without new tokens.
  local n = #id
  if value and sub(value, 1, n) == id and sub(value, n + 1, n + 1) == ' ' and call('PTTL', header) > LIVE then
    call('PEXPIRE', header, life)
    answer = 1
  end
end
