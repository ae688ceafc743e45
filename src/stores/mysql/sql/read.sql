-- Reads names.
-- params: :names
-- returns: name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, now
-- The limit says that there is none: without one, `sql_select_limit` would be it.
-- Texts come as bytes: the connection's character set may not know all of their letters.
SELECT name, version, capacity, fence, waiting, claim, CAST(owner AS BINARY), weight, token, tokens, expires_us,
  CAST(queue AS BINARY), :now
FROM holdfast_locks FORCE INDEX (PRIMARY) WHERE name IN (:names)
LIMIT 18446744073709551615
