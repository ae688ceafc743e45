-- Takes a name that nobody has or waits for. One row by its primary key, found or not. A claim that has run out is in the
-- way: it may guard a transaction, which seize.sql finds out.
-- params: :name, :id, :owner, :weight, :capacity, :tokens, :ttl (microseconds)
-- returns: the first token; no row when it was not taken
-- Not one INSERT ... ON CONFLICT DO UPDATE for new names and known ones: it costs more than twice as much, and it
-- writes to a row also when it takes nothing.
UPDATE holdfast_locks SET
  version = version + 1,
  capacity = CAST(:capacity AS bigint),
  fence = GREATEST(fence + 1, clock.us) + CAST(:tokens AS integer) - 1,
  claim = :id,
  owner = :owner,
  weight = CAST(:weight AS bigint),
  token = GREATEST(fence + 1, clock.us),
  tokens = CAST(:tokens AS integer),
  expires_us = clock.us + CAST(:ttl AS bigint)
FROM (SELECT :now AS us) AS clock
WHERE name = :name AND queue IS NULL AND claim IS NULL
RETURNING token
