-- What is known of a name, in locals that the functions of the other files share.
--
-- Besides the header a name has two keys, for as long as it needs them:
--   records  hash   id of a waiter        -> <kept until, ms> <tokens> <weight> <capacity> <ttl> <patience> <owner>
--                   id of a shared holder -> <token> <count> <weight> <owner>
--   index    zset   id -> a number that says what the id is, and sorts its kind:
--                   below 0       withdrawn, refused until -score ms
--                   1 … 1e13      waiter; the score is its place in the line
--                   1e13 or more  shared holder; what is above 1e13 is the ms at which its lease ends, so that no clock,
--                                 whatever it says, makes a waiter of a holder
-- One zset for three orders keeps the keys of a command few: each costs the driver and the server a little time.
local format = string.format
time = time or call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = (micros - micros % 1000) / 1000
local SHARED, FIRST_SHARED, BEFORE_SHARED = 1e13, '10000000000000', '(10000000000000'

-- `used` is the weight held; `seq` the last place given in the line; `withdrawn` the ms after which no id is refused
-- any more, or 0; `kept` the ms until which Redis keeps index and records.
local used, capacity, waiting, shared, seq, withdrawn, kept
local token, count
-- The holder that takes all of the capacity, or nil; when its lease ends, and whether that has just been set.
local holder, owner, ends, endsAnew

-- The fields of the header as they were, by name.
local found

local function checkLayout(text)
  if text == '1' then return end
  error('HFLAYOUT the lock is kept in layout ' .. text .. ', and this version of holdfast knows layout 1: update it', 0)
end

local function load()
  used, capacity, waiting, shared, seq, withdrawn, kept = 0, 0, 0, 0, 0, 0, 0
  token, count, holder, owner, ends, endsAnew = 0, 1, nil, '', 0, false
  found = {}
  local all, terms = call('HGETALL', header), nil
  for i = 1, #all, 2 do
    local field, text = all[i], all[i + 1]
    if field == 'v' then checkLayout(text) end
    -- Names of one letter are for layouts: a later one may have added what this one need not know, and leaves alone.
    if #field > 1 or match(field, '[fmh]') then found[field] = text end
    if field == 'f' then
      local first, number = match(text, '^(%d+) (%d+)$')
      token, count = tonumber(first), tonumber(number)
    elseif field == 'm' then
      local u, c, w, s, n, x, k = match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
      used, waiting, shared = tonumber(u), tonumber(w), tonumber(s)
      seq, withdrawn, kept = tonumber(n), tonumber(x), tonumber(k)
      if capacity == 0 then capacity = tonumber(c) end
    elseif found[field] then
      holder, terms = field, text
      if field == 'h' then holder, terms = match(text, '^(%S+) (.*)$') end
      local c, o = match(terms, '^%d+ %d+ (%d+) %d+ %d+ (.*)$')
      capacity, owner = tonumber(c), o
    end
  end
  if holder then
    used = capacity
    ends = now + call('PTTL', header) - LIVE
  end
end

local function save()
  local wanted, others = {}, waiting + shared > 0 or withdrawn > 0
  local fence = format('%.0f %d', token, count)
  if found.f or fence ~= '0 1' then wanted.f = fence end
  if others then
    wanted.m = format('%d %d %d %d %d %.0f %.0f', used, capacity, waiting, shared, seq, withdrawn, kept)
  end
  if holder then
    local terms = format('%d %d %d 0 0 %s', count, capacity, capacity, owner)
    if others then wanted.h = holder .. ' ' .. terms else wanted[holder] = terms end
  end
  -- What changed nothing costs no write, which replicas and the log would have to repeat.
  local changed = false
  for field, text in pairs(wanted) do
    if found[field] ~= text then
      call('HSET', header, field, text)
      changed = true
    end
  end
  for field in pairs(found) do
    if not wanted[field] then
      call('HDEL', header, field)
      changed = true
    end
  end
  if holder and endsAnew then
    call('PEXPIRE', header, format('%.0f', ends - now + LIVE))
  elseif changed and not holder then
    call('PEXPIRE', header, format('%.0f', 2 * LIVE))
  end
end

-- Before the first entry of an index that the header does not know: drops what an evicted header left behind.
local function startIndex()
  if waiting + shared == 0 and withdrawn == 0 then
    call('DEL', index, records)
    seq, kept = 0, 0
  end
end

-- Has Redis keep index and records until then at least. A minute more, so that it is not asked every time.
local function keepUntil(ms)
  if ms <= kept and waiting + shared > 1 then return end
  if ms > kept then kept = ms + 60000 end
  local rest = format('%.0f', kept - now)
  call('PEXPIRE', index, rest)
  call('PEXPIRE', records, rest)
end
