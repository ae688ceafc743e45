-- Votes on a claim: sets tokens apart for it if nobody else holds the name here.
-- KEYS: the name's cell
-- ARGV: `<id> <attempt>`, `<tokens> <probation> <1 to be told when it is free> <owner>`, ttl and a day, and if it is more
--       than one, tokens - 1
-- returns: b or b<ms> (busy), n<ms> (not ready), <token> if all tokens begin there, g<token> <count> <waiting> in full
local fields = redis.call('HGETALL', KEYS[1])
if fields[1] == 'f' and not fields[3] then
  -- Nobody holds it and nobody waits: most votes are this one. No new strings: each costs as much as a call. Redis writes
  -- and answers a number of this size in full.
  local token, second = fields[2] + 1, redis.call('TIME')[1] * 1000000
  if token < second then token = second end
  redis.call('HSET', KEYS[1], 'f', ARGV[4] and token + ARGV[4] or token, ARGV[1], ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return token
end
-- @include "vote-node.lua"
-- @include "vote-cell.lua"
local cell, interested = KEYS[1], KEYS[1] .. ':w'
local wanted, try = match(ARGV[1], '^(%S+) (%d+)$')
local tokens, probation, tell, by = match(ARGV[2], '^(%d+) (%d+) (%d) (.*)$')
local lease = ARGV[3] - KEPT
local known = read(cell)
local problem = not known and onProbation(prefixOf(cell) .. ':node', tonumber(probation))
if problem then return problem end
if isWithdrawn(cell, wanted) then return 'b' end
-- What one client has given up another one may have been granted.
local function client(number)
  return math.floor(number / 4294967296)
end
if id and (id ~= wanted or tonumber(attempt) > tonumber(try) or client(attempt) ~= client(try)) then
  if tell == '1' then
    call('ZADD', interested, 'NX', format('%.0f', time[1] * 1000000 + time[2]), match(wanted, '^[^.]*'))
    call('PEXPIRE', interested, 60000)
    if waiting == '0' then
      waiting = '1'
      hold(cell)
      redis.pcall('PUBLISH', channel(cell, match(id, '^[^.]*')), 'c ' .. id .. ' ' .. cell)
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
