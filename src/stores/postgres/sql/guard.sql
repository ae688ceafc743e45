-- Looks at a name and keeps everybody else from changing it until the transaction ends.
-- params: :names
-- returns: as read.sql
-- FOR KEY SHARE would not do: it lets updates of other columns pass.
SELECT name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, :now
FROM holdfast_locks WHERE name = ANY(CAST(:names AS text[])) FOR SHARE
