-- Takes a name that nobody has or waits for, known or not.
-- params: :name, :id, :owner, :weight, :capacity, :tokens, :ttl (microseconds)
-- returns: the first token; otherwise null and the row that is in the way, as read.sql has it
-- The clock is read once: a fence from one moment and a token from a later one could overlap with the next grant.
WITH taken AS (
  INSERT INTO holdfast_locks AS l
    (name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us)
  SELECT :name, 1, CAST(:capacity AS bigint), clock.us + CAST(:tokens AS bigint) - 1, 0, :id, :owner,
    CAST(:weight AS bigint), clock.us, CAST(:tokens AS integer), clock.us + CAST(:ttl AS bigint)
  FROM (SELECT :now AS us) AS clock
  ON CONFLICT (name) DO UPDATE SET
    version = l.version + 1,
    capacity = excluded.capacity,
    fence = GREATEST(l.fence + 1, excluded.token) + excluded.tokens - 1,
    claim = excluded.claim,
    owner = excluded.owner,
    weight = excluded.weight,
    token = GREATEST(l.fence + 1, excluded.token),
    tokens = excluded.tokens,
    expires_us = excluded.expires_us
  WHERE l.queue IS NULL AND l.expires_us <= :now
  RETURNING l.token
)
SELECT token, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM taken
UNION ALL
SELECT NULL, name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, :now
FROM holdfast_locks WHERE name = :name AND NOT EXISTS (SELECT 1 FROM taken)
