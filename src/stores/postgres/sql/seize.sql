-- As swap.sql, for a step that ends claims which may guard a transaction.
-- params: :name, :version, :capacity, :fence, :waiting, :claim, :owner, :weight, :token, :tokens, :expires, :queue,
-- params: :channels, :messages, :ended (ids)
-- returns: one row; none when somebody changed it first, or when one of the claims guards a transaction; see guard.sql
WITH claims AS MATERIALIZED (
  SELECT bool_and(pg_try_advisory_xact_lock(hashtextextended(id, 7525758567302165364))) AS free
  FROM unnest(CAST(:ended AS text[])) AS id
), swapped AS (
  UPDATE holdfast_locks SET
    version = version + 1, capacity = CAST(:capacity AS bigint), fence = CAST(:fence AS bigint),
    waiting = CAST(:waiting AS integer), claim = CAST(:claim AS text), owner = CAST(:owner AS text),
    weight = CAST(:weight AS bigint), token = CAST(:token AS bigint), tokens = CAST(:tokens AS integer),
    expires_us = CAST(:expires AS bigint), queue = CAST(:queue AS text)
  FROM claims WHERE claims.free AND name = CAST(:name AS text) AND version = CAST(:version AS bigint)
  RETURNING 1
)
SELECT (
  SELECT count(pg_notify(told.channel, told.message))
  FROM unnest(CAST(:channels AS text[]), CAST(:messages AS text[])) AS told (channel, message)
) FROM swapped
