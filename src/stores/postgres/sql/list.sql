-- Names that may be in use, a page of them.
-- params: :prefix, :cursor, :limit
-- returns: as read.sql
SELECT name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, :now
FROM holdfast_locks
WHERE name >= CAST(:prefix AS text) AND name > CAST(:cursor AS text)
  AND left(name, length(CAST(:prefix AS text))) = CAST(:prefix AS text)
  AND (expires_us > :now OR queue IS NOT NULL)
ORDER BY name LIMIT CAST(:limit AS integer)
