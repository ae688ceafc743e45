-- Renews many leases at once.
-- params: :names, :ids, :ttl (microseconds)
-- returns: the server's clock as the insert id; 0 when none was renewed
-- The rows are locked in the order of the primary key, whatever the order of the list: two of these cannot deadlock.
-- Without the hint a list that names a sizeable part of the table is looked for row by row, and every row is locked.
UPDATE holdfast_locks FORCE INDEX (PRIMARY) SET version = version + 1, expires_us = LAST_INSERT_ID(:now) + :ttl
WHERE name IN (:names) AND claim IN (:ids) AND expires_us > :now
