-- Renews many leases of the plainest kind: one holder that takes everything, and nobody else.
-- KEYS: the headers of the names
-- ARGV[1]: milliseconds for each header to live, the ttl and a day
-- ARGV[2]: the claim's id for each key, and so on
-- returns: 1 if every one was renewed; otherwise an array of 1: renewed, and 0: not, because it is not of that kind. To
--   those one.lua gives the answer
local call = redis.call
local LIVE = 86400000
local life, rest = ARGV[1], nil
for i = 1, #KEYS do
  local header, id = KEYS[i], ARGV[i + 1]
  if call('PTTL', header) > LIVE and redis.pcall('HEXISTS', header, id) == 1 then
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
