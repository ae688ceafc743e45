-- Renews many leases at once.
-- params: :names, :ids, :ttl (microseconds)
-- returns: claim and waiting of each that was renewed
-- The rows are locked in the order of their names: two of these cannot deadlock. A guarded transaction
-- (FOR KEY SHARE) does not keep them from it.
WITH mine AS (
  SELECT name FROM holdfast_locks
  WHERE name = ANY(CAST(:names AS text[])) AND claim = ANY(CAST(:ids AS text[]))
  ORDER BY name FOR NO KEY UPDATE
)
UPDATE holdfast_locks AS l SET version = l.version + 1, expires_us = :now + CAST(:ttl AS bigint)
FROM mine WHERE l.name = mine.name AND l.claim = ANY(CAST(:ids AS text[])) AND l.expires_us > :now
RETURNING l.claim, l.waiting
