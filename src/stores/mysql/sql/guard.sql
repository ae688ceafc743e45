-- Keeps everybody else from ending the claims on names until the transaction ends.
-- params: :guards (names of rows that nothing but this is locked by)
-- returns: name, version of each
-- Not a lock on the names' own rows, to which others have to write: they renew what they hold there, and wait.
-- With a limit, as read.sql.
SELECT name, version FROM holdfast_locks FORCE INDEX (PRIMARY) WHERE name IN (:guards) ORDER BY name
LIMIT 18446744073709551615 LOCK IN SHARE MODE
