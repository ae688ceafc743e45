-- Forgets names that are not in use.
-- params: :names (a JSON list), :idle (microseconds since the last grant)
-- returns: how many were
DELETE FROM holdfast_locks
WHERE name IN (SELECT value FROM json_each(:names)) AND claim IS NULL AND queue IS NULL AND fence < :now - :idle
