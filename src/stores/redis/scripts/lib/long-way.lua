-- What it takes to carry out any command on any state of a name. Follows the lines of lib/quick.lua that did not do.
-- @include "state.lua"
-- @include "holders.lua"
-- @include "queue.lua"
-- @include "commands.lua"

-- One command, from the header to the header.
local function carryOut(id, kind, terms)
  local claiming = match(kind, '[QTqt]')
  -- A server whose memory is full refuses a script's first write if that could need more of it, and none after the
  -- first. This one needs none and changes nothing: who holds can keep and give up also then; only claims are refused.
  if not claiming then call('ZREMRANGEBYSCORE', index, 1, 0) end
  messages = {}
  load()
  forgetExpired()
  local answer
  if claiming then
    answer = claim(id, terms, kind == 't' or kind == 'T')
  elseif kind == 'k' or kind == 'K' then
    answer = renew(id, terms)
  elseif kind == 'r' or kind == 'R' then
    answer = release(id, kind == 'R' and terms)
  elseif kind == 'd' then
    answer = downgrade(id)
  else
    answer = withdraw(id)
  end
  save()
  speak()
  return answer
end
