-- Whether no transaction is guarded there just now.
-- params: :guard
-- returns: a row; none when one is, or when there is no such row
SELECT name FROM holdfast_locks FORCE INDEX (PRIMARY) WHERE name = :guard LIMIT 1 FOR UPDATE SKIP LOCKED
