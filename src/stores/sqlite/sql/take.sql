-- Takes a name that nobody has or waits for. One row by its primary key, found or not.
-- params: :name, :id, :owner, :weight, :capacity, :tokens, :ttl (microseconds)
-- returns: the first token; no row when it was not taken
UPDATE holdfast_locks SET
  version = version + 1,
  capacity = :capacity,
  fence = MAX(fence + 1, :now) + :tokens - 1,
  claim = :id,
  owner = :owner,
  weight = :weight,
  token = MAX(fence + 1, :now),
  tokens = :tokens,
  expires_us = :now + :ttl
WHERE name = :name AND queue IS NULL AND expires_us <= :now
RETURNING token
