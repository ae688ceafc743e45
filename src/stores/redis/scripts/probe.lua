-- Whether the server takes what the other scripts do: something written and read, and something said to a session.
-- KEYS: two keys of nobody
-- ARGV[1]: a channel of nobody
-- returns: 1; fails with what is wrong
local call, hash, index = redis.call, KEYS[1], KEYS[2]
call('TIME')
call('HSET', hash, 'f', '0 1')
call('PEXPIRE', hash, 60000)
call('PTTL', hash)
call('HGETALL', hash)
call('HGET', hash, 'f')
call('HEXISTS', hash, 'f')
call('HDEL', hash, 'f')
call('ZADD', index, 1, 'a')
call('ZSCORE', index, 'a')
call('ZRANGEBYSCORE', index, 1, 1)
call('ZREMRANGEBYSCORE', index, 1, 1)
call('ZREM', index, 'a')
call('DEL', hash, index)
call('PUBLISH', ARGV[1], '')
return 1
