-- What a node knows of a name is one hash; src/core/vote-cell.ts says what it means.
--
--   f                <fence>
--   <id> <attempt>   the holder, and nobody else is interested: a field of its own, so that giving it up is one HDEL,
--                    which compares and deletes: no script is needed for that. One of
--                      <count> <probation> <tell> <owner>   as it came: its tokens are the last ones up to the fence
--                      +<created> <token> <count> <owner>   after another block was accepted
--   m                <withdrawn> <waiting>: there is more. `withdrawn`: until when the ids in `<cell>:x` count. `waiting`: 1
--                    if somebody in `<cell>:w` wants to be told
--   h                <id> <attempt> and the rest as above: the holder while there is an m. HDEL does not find it then, and a
--                    script has to be asked, which tells who is interested
--
--   v                the layout, if it is not this one, which is 1
--
-- The lease is measured by Redis itself: the hash lives a day longer, and after that the clock is far beyond every token
-- in it.
local KEPT = 86400000
local fence, withdrawn, waiting, left, id, attempt, created, token, count, owner
-- The fields as they were, by name.
local found

local function read(cell)
  fence, withdrawn, waiting, id, found = 0, '0', '0', nil, {}
  local fields, terms = call('HGETALL', cell), nil
  for i = 1, #fields, 2 do
    local field, text = fields[i], fields[i + 1]
    if field == 'v' then checkLayout(text) end
    -- Other names of one letter are a later layout's, which has added what this one need not know.
    if #field > 1 or match(field, '[fmh]') then found[field] = text end
    if field == 'f' then
      fence = tonumber(text)
    elseif field == 'm' then
      local till, some = match(text, '^(%d+) ([01])$')
      waiting = some
      if tonumber(till) > now then withdrawn = till end
    elseif found[field] then
      if field ~= 'h' then text = field .. ' ' .. text end
      id, attempt, terms = match(text, '^(%S+) (%d+) (.*)$')
    end
  end
  if id then
    created, token, count, owner = match(terms, '^%+(%d+) (%d+) (%d+) (.*)$')
    if not created then
      count, owner = match(terms, '^(%d+) %d+ %d (.*)$')
      token = format('%.0f', fence - count + 1)
      created = token
    end
    left = call('PTTL', cell) - KEPT
    if left <= 0 then id = nil end
  end
  -- A withdrawal may have left something where no vote ever was.
  return fence > 0
end

local function hasMore()
  return withdrawn ~= '0' or waiting ~= '0'
end

-- What changed nothing costs no write. Nothing is deleted before the rest is there: a hash without fields is gone, and its
-- time to live with it.
local function write(cell, holder, terms)
  local wanted = {}
  if fence > 0 then wanted.f = format('%.0f', fence) end
  if hasMore() then wanted.m = withdrawn .. ' ' .. waiting end
  if holder then wanted[holder] = terms end
  for field, text in pairs(wanted) do
    if found[field] ~= text then call('HSET', cell, field, text) end
  end
  for field in pairs(found) do
    if not wanted[field] then call('HDEL', cell, field) end
  end
end

-- Without a ttl the lease ends when it would have.
local function hold(cell, ttl)
  local last = token + count - 1
  if last > fence then fence = last end
  local terms = count .. ' 0 0 ' .. owner
  if created ~= token or last ~= fence then
    terms = '+' .. created .. ' ' .. token .. ' ' .. count .. ' ' .. owner
  end
  local holder = id .. ' ' .. attempt
  if hasMore() then holder, terms = 'h', holder .. ' ' .. terms end
  write(cell, holder, terms)
  if ttl then call('PEXPIRE', cell, format('%.0f', ttl + KEPT)) end
end

local function isWithdrawn(cell, wanted)
  if withdrawn == '0' then return false end
  local till = call('ZSCORE', cell .. ':x', wanted)
  return till and tonumber(till) > now
end

local function following()
  return format('%.0f', math.max(fence + 1, time[1] * 1000000))
end

local function prefixOf(cell)
  return match(cell, '^(.*):{')
end

local function channel(cell, session)
  return prefixOf(cell) .. ':s:' .. session
end

-- Whether a session listens at this server. Where nobody may ask, everybody does.
local function listens(to)
  local known = redis.pcall('PUBSUB', 'NUMSUB', to)
  return known.err ~= nil or known[2] > 0
end

local function free(cell, tell)
  local to
  if tell and waiting == '1' then
    -- Only the first one that can hear it: with all of them at once, the votes would split.
    local interested = cell .. ':w'
    repeat
      local first = call('ZPOPMIN', interested)[1]
      to = first and channel(cell, first)
    until not to or listens(to)
    if call('EXISTS', interested) == 0 then waiting = '0' end
  end
  write(cell)
  call('PEXPIRE', cell, KEPT)
  if to then redis.pcall('PUBLISH', to, 'f ' .. cell) end
end
