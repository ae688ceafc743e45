import { redisCommand } from '../../../scripts/services.mjs'

const LEFTOVERS = `
local found = {}
for _, key in ipairs(redis.call('KEYS', 'hf:v:*')) do
  if key ~= 'hf:v:node' and redis.call('PTTL', key) == -1 then found[#found + 1] = key .. ', for ever' end
  if key:match('}$') then
    local body = redis.call('GET', key):gsub('^%+[^|]*|', '')
    if body:match(' ') and redis.call('PTTL', key) > 86400000 then found[#found + 1] = key .. ': ' .. redis.call('GET', key) end
  end
end
return found`

/** What one server still holds for votes. Fences, and ids that were withdrawn less than a minute ago, stay on purpose. */
export async function votesLeftAt({
  host,
  port,
}: {
  readonly host: string
  readonly port: number
}): Promise<string[]> {
  return (await redisCommand({ host, port }, 'EVAL', LEFTOVERS, 0)) as string[]
}
