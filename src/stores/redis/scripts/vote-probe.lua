-- Whether the server takes what votes do: something written and read. A replica, a full memory and missing rights are refusals.
-- KEYS: two keys of nobody
-- ARGV: none
-- returns: 1; fails with what is wrong
local call, hash, index = redis.call, KEYS[1], KEYS[2]
call('TIME')
call('HSET', hash, 'f', '1')
call('PEXPIRE', hash, 60000)
call('PTTL', hash)
call('HGETALL', hash)
call('ZADD', index, 1, 'a')
call('ZSCORE', index, 'a')
call('ZREMRANGEBYSCORE', index, 1, 0)
call('EXISTS', index)
call('ZPOPMIN', index)
call('HDEL', hash, 'f')
return 1
