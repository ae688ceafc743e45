-- Takes a name that nobody has or waits for, if its next token is the one that the process expects.
-- params: :name, :id, :owner, :weight, :capacity, :token, :fence (the last of the tokens), :tokens, :ttl (microseconds)
-- returns: one changed row; none when it was not taken, or when the token would have been another one
-- What take.sql does, but it returns nothing: rows that a statement returns cost as much as a tenth of it.
UPDATE holdfast_locks SET
  version = version + 1,
  capacity = :capacity,
  fence = :fence,
  claim = :id,
  owner = :owner,
  weight = :weight,
  token = :token,
  tokens = :tokens,
  expires_us = :now + :ttl
WHERE name = :name AND queue IS NULL AND expires_us <= :now AND MAX(fence + 1, :now) = :token
