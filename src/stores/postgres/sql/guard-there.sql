-- Whether claims guard a transaction on this server.
-- params: :ids
-- returns: 1 when they do, 0 when one does not; no row on a server that only reads, which cannot tell
-- What is locked here for a moment nobody else has locked.
SELECT CASE WHEN bool_or(pg_try_advisory_xact_lock(hashtextextended(id, 7525758567302165364))) THEN 0 ELSE 1 END
FROM unnest(CAST(:ids AS text[])) AS id
HAVING NOT pg_is_in_recovery()
