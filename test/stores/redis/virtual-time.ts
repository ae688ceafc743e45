import type { Redis } from 'ioredis'

import { IoredisDriver } from '../../../src/stores/redis/client/ioredis.ts'
import { scripts } from '../../../src/stores/redis/scripts.gen.ts'
import type { Script } from '../../../src/stores/redis/scripts.gen.ts'

const CLOCK = 'virtual-clock'

/** Put before a script: everything of Redis that has to do with time is done by hand; the script itself is unchanged. */
const VIRTUAL_TIME = `
local real, redis = redis, { error_reply = redis.error_reply }
local clock = real.call('HMGET', '${CLOCK}', 's', 'u')
local ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function ends(key, life)
  real.call('HSET', 'virtual-expiry', key, string.format('%.0f', ms + life))
end
local function at(call)
  return function(command, key, ...)
    local first, second, third = ...
    if command == 'TIME' then return clock end
    if command == 'PTTL' then return (real.call('HGET', 'virtual-expiry', key) or ms - 2) - ms end
    if command == 'PEXPIRE' then return ends(key, first) end
    if command ~= 'SET' then return call(command, key, ...) end
    if second == 'PX' then ends(key, third) end
    return call(command, key, first)
  end
end
redis.call, redis.pcall = at(real.call), at(real.pcall)
`

const variants = new Map(
  Object.values<Script>({ ...scripts }).map(({ sha1, lua }) => [sha1, VIRTUAL_TIME + lua]),
)

/** A link to a real server on which time stands still until it is told to go on. */
export class VirtualTimeLink extends IoredisDriver {
  private readonly redis: Redis

  constructor(redis: Redis) {
    super(redis, false)
    this.redis = redis
  }

  async setTime(micros: number): Promise<void> {
    const seconds = Math.floor(micros / 1e6)
    await this.redis.hset(CLOCK, { s: String(seconds), u: String(micros - seconds * 1e6) })
  }

  override evalsha([sha1 = '', ...args]: string[]): Promise<unknown> {
    return this.eval([variants.get(sha1) ?? '', ...args])
  }
}
