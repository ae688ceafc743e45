-- Frees a name that the claim has to itself.
-- params: :name, :id
-- returns: one changed row; none when the claim does not hold the name, or is not alone there
UPDATE holdfast_locks SET
  version = version + 1, claim = NULL, owner = NULL, weight = 0, token = 0, tokens = 0, expires_us = 0
WHERE name = :name AND claim = :id AND queue IS NULL AND expires_us > :now
