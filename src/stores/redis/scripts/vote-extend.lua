-- Renews claims that hold their names here, and restores those that nobody holds and nobody was granted since.
-- KEYS: for each claim the name's cell
-- ARGV: for each claim id, attempt, ttl, probation, token, top, tokens, 1 to restore, owner
-- returns: for each claim 1 (renewed), 2 (renewed, others wait), g<token> <waiting>, e (free), f (fenced), l (lost), n<ms>,
--          or x<message>: failed by itself
-- @include "vote-node.lua"
-- @include "vote-cell.lua"

local function extend(cell, at)
  local known = read(cell)
  local problem = not known and onProbation(prefixOf(cell) .. ':node', tonumber(ARGV[at + 4]))
  if problem then return problem end
  local top = tonumber(ARGV[at + 6])
  if not id then
    if fence > top or isWithdrawn(cell, ARGV[at + 1]) then return 'f' end
    if ARGV[at + 8] ~= '1' then return 'e' end
    id, attempt, created, token, owner = ARGV[at + 1], ARGV[at + 2], ARGV[at + 5], ARGV[at + 5], ARGV[at + 9]
    count = format('%.0f', top - token + 1)
  end
  if id ~= ARGV[at + 1] or attempt ~= ARGV[at + 2] then return fence > top and 'f' or 'l' end
  if tonumber(created) > top then return 'f' end
  if tonumber(token) < tonumber(ARGV[at + 5]) then
    token, count = ARGV[at + 5], format('%.0f', top - ARGV[at + 5] + 1)
  end
  fence = math.max(fence, top)
  if ARGV[at + 7] ~= '0' then token, count = following(), ARGV[at + 7] end
  hold(cell, tonumber(ARGV[at + 3]))
  if ARGV[at + 7] ~= '0' then return 'g' .. token .. ' ' .. waiting end
  return waiting == '1' and 2 or 1
end

-- A server whose memory is full refuses a script's first write if that could need more of it, and none after the first. This
-- one needs none and changes nothing: what is held can be kept also then.
redis.pcall('ZREMRANGEBYSCORE', KEYS[1] .. ':w', 1, 0)
local answers = {}
for claim = 1, #KEYS do
  local done, answer = pcall(extend, KEYS[claim], (claim - 1) * 9)
  answers[claim] = done and answer or 'x' .. (type(answer) == 'table' and answer.err or tostring(answer))
end
return answers
