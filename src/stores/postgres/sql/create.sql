-- Makes a row for a name, held by the claim.
-- The version begins at the clock: a row that is forgotten and comes again has none that it had before.
-- params: :name, :id, :owner, :weight, :capacity, :tokens, :ttl (microseconds)
-- returns: the first token; no row when the name has one already
-- The clock is read once: a fence from one moment and a token from a later one could overlap with the next grant.
INSERT INTO holdfast_locks (name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us)
SELECT :name, clock.us, CAST(:capacity AS bigint), clock.us + CAST(:tokens AS integer) - 1, 0, :id, :owner,
  CAST(:weight AS bigint), clock.us, CAST(:tokens AS integer), clock.us + CAST(:ttl AS bigint)
FROM (SELECT :now AS us) AS clock
ON CONFLICT (name) DO NOTHING
RETURNING token
