-- Takes a name that nobody has or waits for. One row by its primary key, found or not. A claim that has run out is in the
-- way: it may guard a transaction, which seize.sql waits for.
-- params: :name, :id, :owner, :weight, :capacity, :tokens, :ttl (microseconds)
-- returns: the first token as the insert id; 0 when it was not taken
-- Not INSERT ... ON DUPLICATE KEY UPDATE: what it says about changed rows depends on the driver's FOUND_ROWS flag, and
-- LAST_INSERT_ID(...) among its VALUES counts even if the row was not inserted. `token` is set before `fence`: MySQL
-- computes assignments from left to right, MariaDB's SIMULTANEOUS_ASSIGNMENT does not, and this order suits both.
UPDATE holdfast_locks SET
  token = LAST_INSERT_ID(GREATEST(fence + 1, :now)),
  fence = GREATEST(fence + 1, :now) + :tokens - 1,
  tokens = :tokens,
  version = version + 1,
  capacity = :capacity,
  claim = :id,
  owner = :owner,
  weight = :weight,
  expires_us = :now + :ttl
WHERE name = :name AND queue IS NULL AND claim IS NULL
