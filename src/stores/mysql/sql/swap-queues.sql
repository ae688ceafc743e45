-- Writes the queues of many names over the rows that they were computed from.
-- params: :names, :versions, :queues (lists in the same order)
-- returns: how many rows were changed; those that somebody changed first are not
-- FIELD finds the place in the list, ELT what stands there: an UPDATE cannot be joined with a list of values in every version.
-- By the primary key, in its order, as keep.sql.
UPDATE holdfast_locks FORCE INDEX (PRIMARY) SET version = version + 1, queue = ELT(FIELD(name, :names), :queues)
WHERE name IN (:names) AND version = CAST(ELT(FIELD(name, :names), :versions) AS SIGNED)
