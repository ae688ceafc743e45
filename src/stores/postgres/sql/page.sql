-- The next names, in use or not.
-- params: :cursor, :limit
-- returns: as read.sql
SELECT name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, :now
FROM holdfast_locks WHERE name > CAST(:cursor AS text) ORDER BY name LIMIT CAST(:limit AS integer)
