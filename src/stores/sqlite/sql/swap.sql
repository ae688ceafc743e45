-- Writes a step of the queue over the row that it was computed from.
-- params: :name, :version, :capacity, :fence, :waiting, :claim, :owner, :weight, :token, :tokens, :expires, :queue
-- returns: one row; none when somebody changed it first
UPDATE holdfast_locks SET
  version = version + 1, capacity = :capacity, fence = :fence, waiting = :waiting, claim = :claim, owner = :owner,
  weight = :weight, token = :token, tokens = :tokens, expires_us = :expires, queue = :queue
WHERE name = :name AND version = :version
RETURNING 1
