-- Looks at names and keeps the claims from being ended by others until the transaction ends.
-- params: :ids, :names (texts of lists, which every driver can send)
-- returns: as read.sql, with a sign before every text: some that run statements make an object of what looks like JSON
-- A shared lock of its own for each claim, rather than for the row, which others have to write to: they renew what they hold
-- there, and wait. FOR KEY SHARE lets them. Under REPEATABLE READ what is read is the transaction's own picture, which
-- may be old: a claim that was renewed since has run out in it, and is refused. Rows are locked last, after the claims.
WITH claims AS MATERIALIZED (
  SELECT count(pg_advisory_xact_lock_shared(hashtextextended(id, 7525758567302165364))) AS locked
  FROM unnest(CAST(CAST(:ids AS text) AS text[])) AS id
)
SELECT '=' || name AS name, version, capacity, fence, waiting, '=' || claim AS claim, '=' || owner AS owner, weight, token, tokens,
  expires_us, '=' || queue AS queue, :now
FROM holdfast_locks AS l JOIN claims ON claims.locked >= 0
WHERE name = ANY(CAST(CAST(:names AS text) AS text[])) ORDER BY name FOR KEY SHARE OF l
