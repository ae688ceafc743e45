-- Writes a step of the queue over the row that it was computed from, and tells whom it concerns.
-- params: :name, :version, :capacity, :fence, :waiting, :claim, :owner, :weight, :token, :tokens, :expires, :queue,
-- params: :channels, :messages
-- returns: one row; none when somebody changed it first
-- The messages go out with the commit or not at all. Without messages none of the server's lock for them is taken.
WITH swapped AS (
  UPDATE holdfast_locks SET
    version = version + 1, capacity = CAST(:capacity AS bigint), fence = CAST(:fence AS bigint),
    waiting = CAST(:waiting AS integer), claim = CAST(:claim AS text), owner = CAST(:owner AS text),
    weight = CAST(:weight AS bigint), token = CAST(:token AS bigint), tokens = CAST(:tokens AS integer),
    expires_us = CAST(:expires AS bigint), queue = CAST(:queue AS text)
  WHERE name = CAST(:name AS text) AND version = CAST(:version AS bigint)
  RETURNING 1
)
SELECT (
  SELECT count(pg_notify(told.channel, told.message))
  FROM unnest(CAST(:channels AS text[]), CAST(:messages AS text[])) AS told (channel, message)
) FROM swapped
