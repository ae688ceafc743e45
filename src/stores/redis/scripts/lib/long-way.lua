-- What it takes to carry out any command on any state of a name. Follows the lines of lib/quick.lua that did not do.
-- @include "state.lua"
-- @include "holders.lua"
-- @include "queue.lua"
-- @include "commands.lua"

-- One command, from the header to the header.
local function carryOut(id, kind, terms)
  local claiming = kind ~= 'k' and kind ~= 'r' and kind ~= 'w'
  -- A server whose memory is full refuses a script's first write if that could need more of it, and none after the
  -- first. This one needs none: who holds can keep and give up also then, and only claims are refused.
  if not claiming then
    if durable then call('PERSIST', header) else call('PEXPIRE', header, KEEP_HEADER) end
  end
  load()
  forgetExpired()
  local answer
  if claiming then
    answer = claim(id, terms, kind == 't' or kind == 'T')
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
