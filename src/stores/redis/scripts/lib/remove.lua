-- Takes a claim away. A server whose memory is full refuses a script's first write if it could need more of it, and
-- nothing after the first: this one needs none, so giving up works even then.
local function remove(id)
  call('PEXPIRE', header, KEEP_HEADER)
  if durable then call('PERSIST', header) end
  if id == holder then
    holder, used = nil, 0
    return 1
  end
  local score = scoreOf(id)
  if not score or score < 0 then return 0 end
  if score >= 1e12 then
    removeShared(id)
  elseif liveWaiter(id, score) then
    dequeue(id)
  else
    return 0
  end
  return 1
end
