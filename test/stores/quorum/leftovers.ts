import { redisCommand } from '../../../scripts/services.mjs'

const LEFTOVERS = `
local found = {}
for _, key in ipairs(redis.call('KEYS', 'hf:v:*')) do
  if key ~= 'hf:v:node' and redis.call('PTTL', key) == -1 then found[#found + 1] = key .. ', for ever' end
  if key:match('}$') then
    -- A cell lives a day longer than the lease in it.
    local lives = redis.call('PTTL', key) > 86400000
    for _, field in ipairs(redis.call('HKEYS', key)) do
      if lives and field ~= 'f' and field ~= 'm' then found[#found + 1] = key .. ': ' .. field end
    end
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
