-- The next names, in use or not.
-- params: :cursor, :limit
-- returns: as read.sql
SELECT name, version, capacity, fence, waiting, claim, CAST(owner AS BINARY), weight, token, tokens, expires_us,
  CAST(queue AS BINARY), :now
FROM holdfast_locks WHERE name > :cursor ORDER BY name LIMIT :limit
