-- Makes sure that a name has a row.
-- params: :name
-- returns: nothing
-- Not ON DUPLICATE KEY UPDATE, which would wait until nobody guards a transaction with a row that is there.
INSERT IGNORE INTO holdfast_locks (name, version, capacity, fence, waiting, weight, token, tokens, expires_us)
VALUES (:name, :now, 0, 0, 0, 0, 0, 0, 0)
