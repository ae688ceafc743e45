-- One command, from the header to the header.
local function carryOut(id, kind, terms)
  local claiming = kind == 'q' or kind == 't'
  -- A server whose memory is full refuses a script's first write if that could need more of it, and none after the
  -- first. This one needs none: who holds can keep and give up also then, and only claims are refused.
  if not claiming then
    if durable then call('PERSIST', header) else call('PEXPIRE', header, KEEP_HEADER) end
  end
  load()
  forgetExpired()
  local answer
  if claiming then
    answer = claim(id, terms, kind)
  elseif kind == 'k' then
    answer = renew(id, terms)
  elseif kind == 'r' then
    answer = release(id, terms)
  else
    answer = withdraw(id)
  end
  save()
  return answer
end
