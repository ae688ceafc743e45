import type { Redis } from 'ioredis'

import { IoredisLink } from '../../../src/stores/redis/ioredis.ts'
import { scripts } from '../../../src/stores/redis/scripts.gen.ts'
import type { Script } from '../../../src/stores/redis/scripts.gen.ts'

const CLOCK = 'virtual-clock'
const REAL = "call('TIME')"

/** The scripts with the server's clock taken out and a hand-set one put in: nothing else about them is changed. */
const variants = new Map(
  Object.values<Script>({ ...scripts }).map(({ sha1, lua }) => {
    const parts = lua.split(REAL)
    return [sha1, { lua: parts.join(`call('HMGET', '${CLOCK}', 's', 'u')`), clocks: parts.length - 1 }]
  }),
)

/** A link to a real server on which time stands still until it is told to go on. */
export class VirtualTimeLink extends IoredisLink {
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
    const variant = variants.get(sha1)
    if (variant?.clocks !== 1) throw new Error('a script that does not read the clock exactly once')
    return this.eval([variant.lua, ...args])
  }
}
