-- Whether the server takes what the other scripts do: something written, and something said to a session.
-- KEYS: a key of nobody
-- ARGV[1]: a channel of nobody
-- returns: 1; fails with what is wrong
redis.call('HSET', KEYS[1], 'f', '0 1')
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[1], '')
return 1
