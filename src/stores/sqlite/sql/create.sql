-- Makes a row for a name, held by the claim.
-- params: :name, :id, :owner, :weight, :capacity, :tokens, :ttl (microseconds)
-- returns: the first token; no row when the name has one already
INSERT INTO holdfast_locks (name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us)
VALUES (:name, 1, :capacity, :now + :tokens - 1, 0, :id, :owner, :weight, :now, :tokens, :now + :ttl)
ON CONFLICT (name) DO NOTHING
RETURNING token
