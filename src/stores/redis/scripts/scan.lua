-- One step of a SCAN for the headers of names, or the cells of votes, without those of which only the fence is left.
-- KEYS: none
-- ARGV[1]: the cursor
-- ARGV[2]: what the keys look like
-- ARGV[3]: how many keys to look at
-- returns: the next cursor, and the keys
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3], 'TYPE', 'hash')
local answer = { found[1] }
for _, key in ipairs(found[2]) do
  -- A key that came with a slot on its way to this server of a Cluster must not be read here yet.
  local fields = redis.pcall('HLEN', key)
  if type(fields) == 'table' or fields > 1 then answer[#answer + 1] = key end
end
return answer
