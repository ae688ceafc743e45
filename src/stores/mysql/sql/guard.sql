-- Looks at a name and keeps everybody else from changing it until the transaction ends.
-- params: :names
-- returns: as read.sql
SELECT name, version, capacity, fence, waiting, claim, CAST(owner AS BINARY), weight, token, tokens, expires_us,
  CAST(queue AS BINARY), :now
FROM holdfast_locks WHERE name IN (:names) LOCK IN SHARE MODE
