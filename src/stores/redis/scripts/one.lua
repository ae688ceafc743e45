-- Carries out one command on a claim.
-- KEYS: header, index, records; with durable fencing its mark as the last one
-- ARGV[1]: the claim's id
-- ARGV[2]: what is to be done
--   q, t  claim: q waits in the line when it is busy, t is told. Q, T: the same, of the whole capacity
--   k, K  keep (renew); K with new tokens
--   r, R  release; R queues a new claim in the same step
--   d     downgrade: a writer goes on as a reader
--   w     withdraw: release, and refuse the id for a minute, so that a late copy of its request is harmless
-- ARGV[3]: the terms
--   of a claim    <tokens> <weight> <capacity> <ttl> <patience> <owner>
--   to keep       <ttl> <patience> <tokens>
--   for R         of the new claim: <q or t><its id> <its terms>
-- ARGV[4]: of a claim and to keep: milliseconds for the header to live, the ttl and a day
-- ARGV[5]: mode, if it is not the usual one
--   c  Cluster: a node knows only those who listen at it, so nobody is passed over for not listening
--   d  durable fencing: tokens only count up, and the mark is their counter. It was given to the server when it was set
--      up; a server without it has lost its data, and with them the counter
-- returns: the answer
--   to claim      <token>: held, with as many tokens as asked for and nobody behind; else h<token> <count> <contended 0|1>:
--                 held; q: queued; b: busy, either with the milliseconds until a lease ends, if there is one; m<capacity>:
--                 mismatch
--   to keep       1: renewed; 2: renewed, with somebody behind; 0: lost; q…: queued, h…: held, as above
--   to release    1: released; 0: not held; with a new claim an array of that and the claim's answer
--   to withdraw   1: released; 0: not held
--   to downgrade  1: done; 0: lost
-- @include "header.lua"
local id, kind, terms, life, mode = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local everyoneListens, durable = mode == 'c', mode == 'd'
local answer
if durable then
  if call('EXISTS', KEYS[4]) == 0 then
    return redis.error_reply('HFNOMARK the mark of durable fencing is missing: the server may have lost its data')
  end
else
  -- @include "quick.lua"
  if answer then return answer end
end
-- A function of its own, for what it needs would have to be made ready for the quick way too.
return (function()
  -- @include "long-way.lua"
  return carryOut(id, kind, terms)
end)()
