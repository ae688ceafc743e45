-- The next names, in use or not.
-- params: :cursor, :limit
-- returns: as read.sql
SELECT name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, :now AS now
FROM holdfast_locks WHERE name > :cursor ORDER BY name LIMIT :limit
