-- Carries out many commands on claims, one after the other. One that fails does not keep the others from being done.
-- KEYS: header, index, records of each command's name; the names may differ
-- ARGV: of each command what one.lua takes, without a mode: two for r, w and d, three for R, else four
-- returns: an array of answers, as in one.lua; or e<message>: failed, having changed nothing
-- @include "header.lua"
local everyoneListens, durable = false, false
local answers, longWay = {}, nil
local at = 1
for i = 1, #KEYS / 3 do
  header, index, records = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local id, kind, terms, life, answer = ARGV[at], ARGV[at + 1], nil, nil, nil
  if kind == 'r' or kind == 'w' or kind == 'd' then
    at = at + 2
  else
    terms, life = ARGV[at + 2], ARGV[at + 3]
    at = at + (kind == 'R' and 3 or 4)
  end
  -- @include "quick.lua"
  if not answer then
    longWay = longWay or (function()
      -- @include "long-way.lua"
      return carryOut
    end)()
    local done
    done, answer = pcall(longWay, id, kind, terms)
    if not done then answer = 'e' .. (type(answer) == 'table' and answer.err or tostring(answer)) end
  end
  answers[i] = answer
end
return answers
