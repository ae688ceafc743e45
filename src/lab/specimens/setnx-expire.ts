import type { Redis } from 'ioredis'

import { FaultProxy } from '../../testkit/fault-proxy.ts'
import { Breakpoints } from './breakpoints.ts'
import type { Play } from './play.ts'
import { belief } from './play.ts'
import { redisClient } from './redis-client.ts'
import type { Specimen } from './specimen.ts'

const TTL = 500
const PATIENCE = 2000

/** `SETNX`, and `EXPIRE` afterwards: two commands, with room for a crash between them. */
class TwoStepLock {
  readonly points: Breakpoints = new Breakpoints()
  private readonly redis: Redis
  private readonly key: string

  constructor(redis: Redis, key: string) {
    this.redis = redis
    this.key = key
  }

  async tryAcquire(): Promise<boolean> {
    if ((await this.redis.setnx(this.key, 'taken')) !== 1) return false
    await this.points.pass('between SETNX and EXPIRE')
    await this.redis.pexpire(this.key, TTL)
    return true
  }

  async release(): Promise<void> {
    await this.redis.del(this.key)
  }
}

const SCRIPT = `if redis.call('SETNX', KEYS[1], ARGV[1]) == 1 then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`

export const setnxThenExpire: Specimen = {
  id: 'setnx-then-expire',
  title: 'SETNX, then EXPIRE',
  flaw: 'a holder that crashes between the two blocks everybody for ever',
  needs: 'redis',
  fault: 'holder crashes between two commands',
  caughtBy: 'liveness',

  async flawed(play: Play) {
    const connection = redisClient(play, play.servers.redis)
    const one = new TwoStepLock(connection, play.name)
    const { reached } = one.points.stopAt('between SETNX and EXPIRE')
    const [a, b] = [play.actor('A'), play.actor('B')]
    // It never comes back from this.
    a.tries(async () => ((await one.tryAcquire()) ? belief(play.serial(), TTL) : null)).catch(() => null)
    await reached
    connection.disconnect()
    play.diary.fault('kill', 'A', 'the holder crashes between SETNX and EXPIRE')
    const other = new TwoStepLock(redisClient(play, play.servers.redis), play.name)
    play.finally(() => other.release())
    const ask = async () => ((await other.tryAcquire()) ? belief(play.serial(), TTL) : null)
    await play.mustGet(b, ask, PATIENCE)
  },

  ours: {
    async run(play) {
      const { redis } = play.servers
      if (redis === undefined) throw new Error('there is no Redis')
      const proxy = await FaultProxy.open(redis)
      play.finally(() => proxy.close())
      const holder = await play.process(`redis://${proxy.host}:${proxy.port}`, { ttl: TTL })
      // On a server that does not know the script yet, the first request would find nothing to do.
      await holder.acquire(`${play.name}:before`, { ttl: TTL })
      await holder.release()
      const holdfast = await play.holdfast(redis.url, { ttl: TTL })
      await holdfast.inspect(play.name)
      const cut = proxy.cutReply({ match: (chunk) => chunk.includes(play.name) })
      const never = holder.acquire(play.name, { ttl: TTL }).catch(() => null)
      await cut
      const [{ holders }] = await Promise.all([holdfast.inspect(play.name), proxy.refuse()])
      await holder.kill()
      await never
      if (holders.length === 0) throw new Error('the holder had no lock when its connection was cut')
      play.diary.fault(
        'kill',
        'A',
        'the holder crashes when the server has seen its request and it has no reply',
      )
      play.adopt('A', holder)
      const b = play.actor('B')
      const lease = await play.mustGet(b, () => holdfast.mutex(play.name).tryAcquire(), PATIENCE)
      if (lease !== null) await b.releases(() => lease.release())
    },
  },
}

/** Both commands in one script: the step that repairs it. `SET key value NX PX ttl` says the same in one command. */
export const setnxExpireScript: Specimen = {
  id: 'setnx-expire-script',
  title: 'SETNX and EXPIRE in one script',
  flaw: 'none here: right, and superseded by SET with NX and PX',
  needs: 'redis',
  fault: 'holder crashes before it has the reply',

  async flawed(play: Play) {
    const { redis } = play.servers
    if (redis === undefined) throw new Error('there is no Redis')
    const proxy = await FaultProxy.open(redis)
    play.finally(() => proxy.close())
    const cut = proxy.cutReply({ match: (chunk) => chunk.includes(play.name) })
    const [a, b] = [play.actor('A'), play.actor('B')]
    const take = (connection: Redis) => async () =>
      (await connection.eval(SCRIPT, 1, play.name, 'taken', TTL)) === 1 ? belief(play.serial(), TTL) : null
    a.tries(take(redisClient(play, proxy))).catch(() => null)
    await cut
    play.diary.fault(
      'kill',
      'A',
      'the holder crashes when the server has seen its request and it has no reply',
    )
    const connection = redisClient(play, redis)
    play.finally(() => connection.del(play.name))
    await play.mustGet(b, take(connection), PATIENCE)
  },
}
