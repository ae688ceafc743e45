-- Makes sure that a name has a row.
-- params: :name
-- returns: nothing that matters
INSERT INTO holdfast_locks (name, version, capacity, fence, waiting, weight, token, tokens, expires_us)
VALUES (:name, :now, 0, 0, 0, 0, 0, 0, 0) ON CONFLICT (name) DO NOTHING
RETURNING 1
