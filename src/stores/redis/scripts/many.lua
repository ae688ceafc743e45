-- Carries out many commands on claims, one after the other. One that fails does not keep the others from being done.
-- KEYS: header, index, records of each command's name; the names may differ
-- ARGV: of each command the claim's id, what is to be done, and the terms (or nothing), as in one.lua
-- returns: an array of answers, as in one.lua; or e<message>: failed, having changed nothing
-- @include "header.lua"
local everyoneListens, durable = false, false
local answers, longWay = {}, nil
for i = 1, #ARGV, 3 do
  header, index, records = KEYS[i], KEYS[i + 1], KEYS[i + 2]
  local id, kind, terms, answer = ARGV[i], ARGV[i + 1], ARGV[i + 2], nil
  if terms == '' then terms = nil end
  value = call('GET', header)
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
  answers[#answers + 1] = answer
end
return answers
