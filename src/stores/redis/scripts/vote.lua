-- Votes on a claim: sets tokens apart for it if nobody else holds the name here.
-- KEYS: the name's cell, who is interested, withdrawn ids, the node
-- ARGV: id, attempt, ttl, tokens, probation, 1 to be told when it is free, owner
-- returns: b or b<ms> (busy), n<ms> (not ready), <token> if all tokens begin there, g<token> <count> <waiting> in full
-- @include "vote-node.lua"
-- @include "vote-cell.lua"
local cell, interested = KEYS[1], KEYS[2]
local known = read(cell)
local problem = not known and onProbation(KEYS[4], tonumber(ARGV[5]))
if problem then return problem end
if isWithdrawn(KEYS[3], ARGV[1]) then return 'b' end
if id and (id ~= ARGV[1] or tonumber(attempt) > tonumber(ARGV[2])) then
  if ARGV[6] == '1' then
    call('ZADD', interested, 'NX', format('%.0f', now), match(ARGV[1], '^[^.]*'))
    call('PEXPIRE', interested, 60000)
    if waiting == '0' then
      waiting = '1'
      hold(cell, ends - now)
      call('PUBLISH', channel(cell, match(id, '^[^.]*')), 'c ' .. id .. ' ' .. cell)
    end
  end
  return format('b%.0f', ends - now)
end
if id and attempt == ARGV[2] then
  hold(cell, tonumber(ARGV[3]))
  return 'g' .. token .. ' ' .. count .. ' ' .. waiting
end
token, count = following(), ARGV[4]
id, attempt, created, owner = ARGV[1], ARGV[2], token, ARGV[7]
fence = token + count - 1
hold(cell, tonumber(ARGV[3]))
if waiting == '0' then return token end
return 'g' .. token .. ' ' .. count .. ' 1'
