-- As swap.sql, for a step that ends claims which may guard a transaction: it waits for the end of that.
-- params: :name, :version, :capacity, :fence, :waiting, :claim, :owner, :weight, :token, :tokens, :expires, :queue, :guard
-- returns: changed rows; none when somebody changed it first
UPDATE holdfast_locks AS g JOIN holdfast_locks AS l ON l.name = :name AND l.version = :version
SET
  g.version = g.version + 1,
  l.version = l.version + 1, l.capacity = :capacity, l.fence = :fence, l.waiting = :waiting, l.claim = :claim,
  l.owner = :owner, l.weight = :weight, l.token = :token, l.tokens = :tokens, l.expires_us = :expires, l.queue = :queue
WHERE g.name = :guard
