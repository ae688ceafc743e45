-- Renews many leases at once.
-- params: :names, :ids (JSON lists), :ttl (microseconds)
-- returns: claim and waiting of each that was renewed
UPDATE holdfast_locks SET version = version + 1, expires_us = :now + :ttl
WHERE name IN (SELECT value FROM json_each(:names)) AND claim IN (SELECT value FROM json_each(:ids))
  AND expires_us > :now
RETURNING claim, waiting
