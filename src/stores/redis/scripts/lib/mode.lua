-- How a store differs from the usual one; ARGV says which: nothing, or one letter.
--   c  Cluster: PUBLISH counts only the listeners at this node, so nobody is passed over for not listening
--   d  durable fencing: tokens only count up, and the header is kept for ever. The last key is the mark that the server
--      was given when it was set up; a server without it has lost its data, and with them the counters
local everyoneListens, durable = mode == 'c', mode == 'd'
if durable and call('EXISTS', KEYS[#KEYS]) == 0 then
  return redis.error_reply('HFNOMARK the mark of durable fencing is missing: the server may have lost its data')
end
