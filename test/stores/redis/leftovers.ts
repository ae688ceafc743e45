import { redisCommand } from '../../../scripts/services.mjs'

/** Run by the server: there may be many keys, and all of them are to be seen at one moment. */
const LEFTOVERS = `
local prefix, found = ARGV[1], {}
if ARGV[2] ~= '0' then redis.call('SELECT', ARGV[2]) end
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local function add(what) found[#found + 1] = what end
for _, key in ipairs(redis.call('KEYS', prefix .. ':*')) do
  if redis.call('PTTL', key) == -1 then add(key .. ', for ever') end
  if key:match('}:r$') then
    -- A waiter that was silent for too long is gone, and so is a holder whose lease has ended.
    local records = redis.call('HGETALL', key)
    for i = 1, #records, 2 do
      local score = tonumber(redis.call('ZSCORE', key:sub(1, -2) .. 'i', records[i]) or '0')
      local till = score >= 1e13 and score - 1e13 or tonumber(records[i + 1]:match('^%d+'))
      if till > now then add(key .. ': ' .. records[i]) end
    end
  elseif key:match('}$') then
    -- A header lives a day longer than the lease in it.
    local lives = redis.call('PTTL', key) > 86400000
    for i, field in ipairs(redis.call('HKEYS', key)) do
      if lives and field ~= 'f' and field ~= 'm' then add(key .. ': ' .. field) end
    end
  elseif not key:match('}:i$') then
    add(key)
  end
end
for _, channel in ipairs(redis.call('PUBSUB', 'CHANNELS', prefix .. ':*')) do
  add('a subscription to ' .. channel)
end
return found`

/**
 * Everything that a server still keeps for locks. The header of a name that nobody uses is left out, for it carries the
 * fence, and so are ids that were withdrawn less than a minute ago; but whatever is there must have an end.
 */
export async function leftoversAt(
  { host, port }: { readonly host: string; readonly port: number },
  prefix = 'hf',
  db = 0,
): Promise<string[]> {
  return (await redisCommand({ host, port }, 'EVAL', LEFTOVERS, 0, prefix, db)) as string[]
}
