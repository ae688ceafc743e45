-- Names that may be in use, a page of them.
-- params: :prefix, :cursor, :limit
-- returns: as read.sql
SELECT name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, :now AS now
FROM holdfast_locks
WHERE name >= :prefix AND name > :cursor AND substr(name, 1, length(:prefix)) = :prefix
  AND (expires_us > :now OR queue IS NOT NULL)
ORDER BY name LIMIT :limit
