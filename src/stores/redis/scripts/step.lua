-- Carries out commands on claims, one after the other. All that a store asks goes through here, one at a time or many.
-- KEYS: header, index, records of each command's name; with durable fencing its mark as the last one. The names may
--       differ; in a Cluster they share a slot
-- ARGV[1]: mode: empty, or one letter
--   c  Cluster: PUBLISH counts only the listeners at this node, so nobody is passed over for not listening
--   d  durable fencing: tokens only count up, and the header is kept for ever. The mark was given to the server when it
--      was set up; a server without it has lost its data, and with them the counters
-- ARGV[2…]: of each command the claim's id, and a letter with what is asked for:
--   q, t  claim: <tokens> <weight> <capacity> <ttl> <patience> <owner>. When busy, q waits in the line, t is told
--   k     keep (renew): <ttl> <patience> <tokens>
--   r     release; with a next claim: <its id> <what it asks for, as above>
--   w     withdraw: release, and refuse the id for a minute, so that a late copy of its request is harmless
-- returns: an array with the answer to each command:
--   claim    <token>: held, with as many tokens as asked for and nobody behind. Else h<token> <count> <contended 0|1>:
--            held; q: queued; b or b<ms until a lease ends>: busy; m<capacity>: mismatch
--   keep     1: renewed; 2: renewed, with somebody behind; 0: lost; q: queued; h…: held, as above
--   release  1: released; 0: not held; with a next claim an array of that and the claim's answer
--   any      e<message>: failed, having changed nothing
-- @include "header.lua"
local mode = ARGV[1]
local everyoneListens, durable = mode == 'c', mode == 'd'
if durable and call('EXISTS', KEYS[#KEYS]) == 0 then
  return redis.error_reply('HFNOMARK the mark of durable fencing is missing: the server may have lost its data')
end

local answers, longWay = {}, nil
for i = 1, (#ARGV - 1) / 2 do
  header, index, records = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  value = call('GET', header)
  local id, ask, answer = ARGV[2 * i], ARGV[2 * i + 1], nil
  -- @include "quick.lua"
  if not answer then
    longWay = longWay or (function()
      -- @include "state.lua"
      -- @include "holders.lua"
      -- @include "queue.lua"
      -- @include "commands.lua"
      -- @include "long-way.lua"
      return carryOut
    end)()
    local done
    done, answer = pcall(longWay, id, sub(ask, 1, 1), sub(ask, 2))
    -- One command's failure is not the others'.
    if not done then answer = 'e' .. (type(answer) == 'table' and answer.err or tostring(answer)) end
  end
  answers[i] = answer
end
return answers
