-- Makes a row for a name, held by the claim.
-- The version begins at the clock: a row that is forgotten and comes again has none that it had before.
-- params: :name, :id, :owner, :weight, :capacity, :tokens, :ttl (microseconds)
-- returns: the first token; no row when the name has one already
INSERT INTO holdfast_locks (name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us)
VALUES (:name, :now, :capacity, :now + :tokens - 1, 0, :id, :owner, :weight, :now, :tokens, :now + :ttl)
ON CONFLICT (name) DO NOTHING
RETURNING token
