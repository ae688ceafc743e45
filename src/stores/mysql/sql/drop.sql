-- Forgets names that are not in use.
-- params: :names, :idle (microseconds since the last grant)
-- returns: how many were
-- By the primary key alone, as keep.sql. The plain form of DELETE takes no hint.
-- Nor does this one take an alias on a connection without a database of its own.
DELETE holdfast_locks FROM holdfast_locks FORCE INDEX (PRIMARY)
WHERE name IN (:names) AND claim IS NULL AND queue IS NULL AND expires_us <= :now AND fence < :now - :idle
