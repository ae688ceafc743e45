-- Reads names.
-- params: :names
-- returns: name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, now
SELECT name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, :now
FROM holdfast_locks WHERE name = ANY(CAST(:names AS text[]))
