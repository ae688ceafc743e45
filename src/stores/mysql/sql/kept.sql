-- Which leases keep.sql renewed: those that end exactly when it said.
-- params: :names, :ids, :expires
-- returns: claim, waiting
-- With a limit, as read.sql.
SELECT claim, waiting FROM holdfast_locks FORCE INDEX (PRIMARY) WHERE name IN (:names) AND claim IN (:ids) AND expires_us = :expires
LIMIT 18446744073709551615
