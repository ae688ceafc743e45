-- Reads names.
-- params: :names (a JSON list)
-- returns: name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, now
SELECT name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, :now AS now
FROM holdfast_locks WHERE name IN (SELECT value FROM json_each(:names))
