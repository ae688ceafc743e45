-- Votes on a claim: sets tokens apart for it if nobody else holds the name here.
-- KEYS: the name's cell, the node
-- ARGV: `<id> <attempt> <tokens> <owner>`, ttl and a day, `<probation> <1 to be told when it is free>`
-- returns: b or b<ms> (busy), n<ms> (not ready), <token> if all tokens begin there, g<token> <count> <waiting> in full
local value = redis.call('GET', KEYS[1])
local last = value and tonumber(value)
if last and last > 0 then
  -- Nobody holds it and nobody waits: most votes are this one. No new strings but those that are needed: each costs as
  -- much as a call.
  local first = redis.call('TIME')[1] .. '000000'
  if last >= first + 0 then first = string.format('%.0f', last + 1) end
  redis.call('SET', KEYS[1], first .. ' ' .. first .. ' ' .. ARGV[1], 'PX', ARGV[2])
  return first
end
-- @include "vote-node.lua"
-- @include "vote-cell.lua"
local cell, interested = KEYS[1], KEYS[1] .. ':w'
local wanted, try, tokens, by = match(ARGV[1], '^(%S+) (%d+) (%d+) (.*)$')
local probation, tell = match(ARGV[3], '^(%d+) (%d)$')
local lease = ARGV[2] - KEPT
local known = read(cell)
local problem = not known and onProbation(KEYS[2], tonumber(probation))
if problem then return problem end
if isWithdrawn(cell, wanted) then return 'b' end
if id and (id ~= wanted or tonumber(attempt) > tonumber(try)) then
  if tell == '1' then
    call('ZADD', interested, 'NX', format('%.0f', now), match(wanted, '^[^.]*'))
    call('PEXPIRE', interested, 60000)
    if waiting == '0' then
      waiting = '1'
      hold(cell)
      call('PUBLISH', channel(cell, match(id, '^[^.]*')), 'c ' .. id .. ' ' .. cell)
    end
  end
  return format('b%.0f', left)
end
if id and attempt == try then
  hold(cell, lease)
  return 'g' .. token .. ' ' .. count .. ' ' .. waiting
end
token, count = following(), tokens
id, attempt, created, owner = wanted, try, token, by
hold(cell, lease)
if waiting == '0' then return token end
return 'g' .. token .. ' ' .. count .. ' 1'
