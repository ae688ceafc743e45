-- Takes a name that nobody has or waits for, known or not.
-- params: :name, :id, :owner, :weight, :capacity, :tokens, :ttl (microseconds)
-- returns: the first token; no row when it was not taken
INSERT INTO holdfast_locks (name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us)
VALUES (:name, 1, :capacity, :now + :tokens - 1, 0, :id, :owner, :weight, :now, :tokens, :now + :ttl)
ON CONFLICT (name) DO UPDATE SET
  version = version + 1,
  capacity = excluded.capacity,
  fence = MAX(fence + 1, excluded.token) + excluded.tokens - 1,
  claim = excluded.claim,
  owner = excluded.owner,
  weight = excluded.weight,
  token = MAX(fence + 1, excluded.token),
  tokens = excluded.tokens,
  expires_us = excluded.expires_us
WHERE queue IS NULL AND expires_us <= :now
RETURNING token
