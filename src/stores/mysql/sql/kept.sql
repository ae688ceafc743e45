-- Which leases keep.sql renewed: those that end exactly when it said.
-- params: :names, :ids, :expires
-- returns: claim, waiting
SELECT claim, waiting FROM holdfast_locks FORCE INDEX (PRIMARY) WHERE name IN (:names) AND claim IN (:ids) AND expires_us = :expires
