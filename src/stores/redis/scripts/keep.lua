-- Renews many leases of the plainest kind: one holder that takes everything, and nobody else.
-- KEYS: the headers of the names
-- ARGV[1]: milliseconds for each header to live, the ttl and a day
-- ARGV[2]: the claim's id for each key, and so on
-- returns: 1 if every one was renewed; otherwise an array of 1: renewed, and 0: not, because it is not of that kind. To
--   those one.lua gives the answer
local call, sub = redis.call, string.sub
local LIVE = 86400000
local life, rest = ARGV[1], nil
for i = 1, #KEYS do
  local header, id = KEYS[i], ARGV[i + 1]
  local value, n = call('GET', header), #id
  if value and sub(value, 1, n) == id and sub(value, n + 1, n + 1) == ' ' and call('PTTL', header) > LIVE then
    call('PEXPIRE', header, life)
  else
    rest = rest or {}
    rest[#rest + 1] = i
  end
end
if not rest then return 1 end
local answers = {}
for i = 1, #KEYS do answers[i] = 1 end
for _, i in ipairs(rest) do answers[i] = 0 end
return answers
