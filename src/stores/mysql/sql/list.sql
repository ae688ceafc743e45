-- Names that may be in use, a page of them.
-- params: :prefix, :cursor, :limit
-- returns: as read.sql
SELECT name, version, capacity, fence, waiting, claim, CAST(owner AS BINARY), weight, token, tokens, expires_us,
  CAST(queue AS BINARY), :now
FROM holdfast_locks
WHERE name >= :prefix AND name > :cursor AND LEFT(name, LENGTH(:prefix)) = :prefix
  AND (expires_us > :now OR queue IS NOT NULL)
ORDER BY name LIMIT :limit
