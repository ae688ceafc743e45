-- Claims some weight of a name: granted at once, put into the line, or refused.
-- KEYS: header, index, records; with durable fencing also its mark
-- ARGV[1]: the claim's id
-- ARGV[2]: what it asks for: <weight> <capacity> <tokens> <ttl> <patience> <owner>
-- ARGV[3]: when busy: q to wait in the line, t to be told
-- ARGV[4]: mode, if not the usual one; see lib/mode.lua
-- returns: <token> if held with as many tokens as asked for and nobody behind; else
--          h<token> <count> <contended 0 or 1> held; q queued; b or b<ms until a lease ends> busy; m<capacity> mismatch
-- @include "open.lua"
local id, record, mode = ARGV[1], ARGV[2], ARGV[4]

-- The common case, before anything else is even defined: all of the capacity is wanted, nobody has it or waits.
if mode ~= 'd' and string.find(record, '^(%d+) %1 ') then
  local free, fence = not value, 0
  if value then
    local token, count = match(value, '^(%d+) (%d+)$')
    if token then
      free, fence = true, token + count - 1
    else
      local at, ttl
      token, at, count, ttl = match(value, '^(%d+) (%d+) %S+ %d+ %d+ (%d+) (%d+)')
      if token and at - at % 1000 + ttl * 1000 <= micros then
        free, fence = true, token + count - 1
      end
    end
  end
  if free then
    -- Put together from the server's own digits: to format a number costs more than the rest of this branch.
    local at = time[1] .. sub('00000' .. time[2], -6)
    local token = at
    if fence >= micros then token = string.format('%.0f', fence + 1) end
    call('SET', header, token .. ' ' .. at .. ' ' .. id .. ' ' .. record, 'PX', '172800000')
    return token
  end
end

-- @include "mode.lua"
-- @include "state.lua"
-- @include "holders.lua"
-- @include "queue.lua"
-- @include "claim.lua"
load(value)
forgetExpired()
local answer = claim(id, record, ARGV[3])
save()
return answer
