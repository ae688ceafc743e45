-- Writes a key only for a token that is not lower than the last one that wrote it.
-- KEYS: the key, and the key of its fence
-- ARGV[1]: the token
-- ARGV[2]: the value
-- ARGV[3]: milliseconds to keep the value, or 0 for ever
-- ARGV[4]: milliseconds to keep the fence, or 0 for ever
-- returns: 1 and the token: written; 0 and the last token: refused
local token, last = ARGV[1], redis.call('GET', KEYS[2])
-- As text: beyond 2^53 a number of Lua's would take neighbours for equals.
if last and (#token < #last or (#token == #last and token < last)) then return { 0, last } end
redis.call('SET', KEYS[2], token)
if ARGV[4] ~= '0' then redis.call('PEXPIRE', KEYS[2], ARGV[4]) end
if ARGV[3] == '0' then
  redis.call('SET', KEYS[1], ARGV[2])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return { 1, token }
