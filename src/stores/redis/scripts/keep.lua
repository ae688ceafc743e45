-- Renews many leases of the plainest kind: one holder that takes everything, and nobody else. It takes their headers alone.
-- KEYS: the headers of the names
-- ARGV[1]: milliseconds for each header to live, the ttl and a day
-- ARGV[2]: the claim's id for each key, and so on
-- ARGV[#KEYS + 2]: 1 if also holders of everything are to be renewed that are not alone, or were not a minute ago
-- returns: 1 if every one was renewed; otherwise an array of 1: renewed, 2: renewed, with somebody behind, and 0: not, because
--   it is not of that kind. To those one.lua gives the answer
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

-- Its holder is in another field then: see lib/header.lua. A later layout is for one.lua to refuse.
local function keepBeside(header, id)
  local holder = redis.pcall('HGET', header, 'h')
  if type(holder) ~= 'string' or string.sub(holder, 1, #id + 1) ~= id .. ' ' then return 0 end
  if call('PTTL', header) <= LIVE or (call('HGET', header, 'v') or '1') ~= '1' then return 0 end
  call('PEXPIRE', header, life)
  return string.match(call('HGET', header, 'm') or '', '^%d+ %d+ 0 ') and 1 or 2
end

local answers, any = {}, ARGV[#KEYS + 2] == '1'
for i = 1, #KEYS do answers[i] = 1 end
for _, i in ipairs(rest) do answers[i] = any and keepBeside(KEYS[i], ARGV[i + 1]) or 0 end
return answers
