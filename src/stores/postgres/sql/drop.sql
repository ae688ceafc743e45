-- Forgets names that are not in use.
-- params: :names, :idle (microseconds since the last grant)
-- returns: how many were
-- One that somebody else has locked just now is left for another time: nobody waits for this, nor is waited for.
DELETE FROM holdfast_locks WHERE claim IS NULL AND queue IS NULL AND fence < :now - CAST(:idle AS bigint) AND name IN (
  SELECT name FROM holdfast_locks
  WHERE name = ANY(CAST(:names AS text[])) AND claim IS NULL AND queue IS NULL AND fence < :now - CAST(:idle AS bigint)
  ORDER BY name FOR UPDATE SKIP LOCKED
)
