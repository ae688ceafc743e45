-- Reads names inside of somebody else's transaction.
-- params: :names (a JSON list)
-- returns: as read.sql, with a sign before every text: some that run statements make an object of what looks like JSON
SELECT '=' || name AS name, version, capacity, fence, waiting, '=' || claim AS claim, '=' || owner AS owner, weight, token, tokens,
  expires_us, '=' || queue AS queue, :now AS now
FROM holdfast_locks WHERE name IN (SELECT value FROM json_each(:names))
