import type { Redis } from 'ioredis'

import type { Play } from './play.ts'
import { belief } from './play.ts'
import { redisClient } from './redis-client.ts'
import type { Specimen } from './specimen.ts'

const PATIENCE = 1500

/** `SETNX key value` to take it, `DEL key` to give it back. Nothing ends it but its holder. */
class SetnxLock {
  private readonly redis: Redis
  private readonly key: string

  constructor(redis: Redis, key: string) {
    this.redis = redis
    this.key = key
  }

  async tryAcquire(): Promise<boolean> {
    return (await this.redis.setnx(this.key, 'taken')) === 1
  }

  async release(): Promise<void> {
    await this.redis.del(this.key)
  }
}

export const setnx: Specimen = {
  id: 'setnx-without-expiry',
  title: 'SETNX without expiry',
  flaw: 'a holder that crashes blocks everybody for ever',
  needs: 'redis',
  fault: 'holder crashes',
  caughtBy: 'liveness',

  async flawed(play: Play) {
    const connection = redisClient(play, play.servers.redis)
    const [a, b] = [play.actor('A'), play.actor('B')]
    const one = new SetnxLock(connection, play.name)
    await a.takes(async () => ((await one.tryAcquire()) ? belief(play.serial()) : null))
    connection.disconnect()
    play.diary.fault('kill', 'A', 'the holder crashes')
    const other = new SetnxLock(redisClient(play, play.servers.redis), play.name)
    play.finally(() => other.release())
    await play.mustGet(b, async () => ((await other.tryAcquire()) ? belief(play.serial()) : null), PATIENCE)
  },

  ours: { run: (play) => crashOfHolder(play, play.servers.redis?.url ?? '') },
}

/** The holder is a process, and is killed. Whoever comes next has the lock when the lease has run out. */
export async function crashOfHolder(play: Play, url: string): Promise<void> {
  const ttl = 500
  const holder = await play.process(url, { ttl })
  await holder.acquire(play.name)
  await holder.kill()
  play.diary.fault('kill', 'A', 'the holder crashes')
  play.adopt('A', holder)
  const b = play.actor('B')
  const holdfast = await play.holdfast(url, { ttl })
  const lease = await play.mustGet(b, () => holdfast.mutex(play.name).tryAcquire(), PATIENCE + ttl)
  if (lease !== null) await b.releases(() => lease.release())
}
