-- Forgets names that are not in use.
-- params: :names, :idle (microseconds since the last grant)
-- returns: how many were
-- By the primary key alone, as keep.sql. The plain form of DELETE takes no hint.
DELETE l FROM holdfast_locks AS l FORCE INDEX (PRIMARY)
WHERE l.name IN (:names) AND l.claim IS NULL AND l.queue IS NULL AND l.expires_us <= :now
  AND l.fence < :now - :idle
