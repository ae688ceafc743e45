-- What is known of a name, in locals that the functions of the other files share.
--
-- Besides the header a name has two keys, as long as it needs them:
--   records  hash   id of a waiter        -> <kept until, ms> <weight> <capacity> <tokens> <ttl> <patience> <owner>
--                   id of a shared holder -> <token> <weight> <count> <owner>
--   index    zset   id -> a number that says what the id is, and sorts its kind:
--                   below 0       withdrawn, refused until -score ms
--                   1 … 1e12      waiter; the score is its place in the line
--                   1e12 or more  shared holder; the score is the ms at which its lease ends
-- One zset for three orders keeps the keys of a command few: each costs the driver and the server a little time.
local index, records = KEYS[2], KEYS[3]
local format = string.format
local now = (micros - micros % 1000) / 1000
-- Set by the scripts before `load`; see their ARGV.
local durable, everyoneListens

local used, capacity, waiting, shared, seq, withdrawn, kept
local token, count
local holder, at, ttl, patience, owner

local function load(text)
  used, capacity, waiting, shared, seq, withdrawn, kept = 0, 0, 0, 0, 0, 0, 0
  token, count, holder = 0, 1, nil
  if not text then return end
  local body = text
  if sub(text, 1, 1) == '+' then
    local a, b, c, d, e, f, g
    a, b, c, d, e, f, g, body = match(text, '^%+(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
    used, capacity, waiting, shared = tonumber(a), tonumber(b), tonumber(c), tonumber(d)
    seq, withdrawn, kept = tonumber(e), tonumber(f), tonumber(g)
  end
  local t, when, id, c, n, lease, p, who = match(body, '^(%d+) (%d+) (%S+) %d+ (%d+) (%d+) (%d+) (%d+) (.*)$')
  if not id then
    token, count = match(body, '^(%d+) (%d+)$')
    token, count = tonumber(token), tonumber(count)
    return
  end
  token, count = tonumber(t), tonumber(n)
  holder, at, ttl, patience, owner = id, tonumber(when), tonumber(lease), p, who
  capacity = tonumber(c)
  used = capacity
end

local function holderEnds()
  return (at - at % 1000) / 1000 + ttl
end

-- Longer than any lease by a day, so that the fence outlives it by that much.
local KEEP_HEADER = '172800000'

local function save()
  local text
  if holder then
    text = format('%.0f %.0f %s %d %d %d %d %s %s', token, at, holder, capacity, capacity, count, ttl, patience, owner)
  elseif token > 0 then
    text = format('%.0f %d', token, count)
  else
    text = '0 1'
  end
  if waiting + shared > 0 or withdrawn > 0 then
    text = format('+%d %d %d %d %d %.0f %.0f ', used, capacity, waiting, shared, seq, withdrawn, kept) .. text
  end
  if text == (value or '0 1') then return end
  if durable then write('SET', header, text) else write('SET', header, text, 'PX', KEEP_HEADER) end
end
