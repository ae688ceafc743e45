import { setTimeout as sleep } from 'node:timers/promises'

import type { Play } from './play.ts'
import { belief } from './play.ts'
import { redisClient } from './redis-client.ts'
import type { RedisPair, Specimen } from './specimen.ts'

const TTL = 10_000

/** `SET NX PX` on a primary whose replica lags. Nobody did anything wrong, and two have the lock. */
export const failover: Specimen = {
  id: 'failover',
  title: 'A failover before the replica heard of it',
  flaw: 'the replica that takes over gives the lock to a second client',
  needs: 'redisPair',
  fault: 'failover to a replica that lags',
  caughtBy: 'exclusivity',

  async flawed(play: Play) {
    const pair = await pairOf(play)
    const [a, b] = [play.actor('A'), play.actor('B')]
    const take = (at: RedisPair['primary']) => {
      const redis = redisClient(play, at)
      return async () => {
        const held = belief(play.serial(), TTL)
        return (await redis.set(play.name, 'taken', 'PX', TTL, 'NX')) === 'OK' ? held : null
      }
    }
    pair.isolate()
    await a.takes(take(pair.primary))
    await pair.failover()
    play.diary.fault('failover', 'primary', 'the replica had not heard of the lock')
    await b.tries(take(pair.replica))
    await sleep(20)
  },

  ours: {
    // No lock on asynchronous replicas can; the token is what helps.
    breaks: ['exclusivity', 'lost update'],
    async run(play) {
      const pair = await pairOf(play)
      const [a, b] = [play.actor('A'), play.actor('B')]
      const options = { ttl: TTL, requestTimeout: 500 }
      const before = await play.holdfast(pair.primary.url, options)
      pair.isolate()
      const old = await a.takes(() => before.mutex(play.name).tryAcquire())
      const staleWrite = play.reads(a, old.token)
      await pair.failover()
      play.diary.fault('failover', 'primary', 'the replica had not heard of the lock')
      const after = await play.holdfast(pair.replica.url, options)
      const lease = await b.takes(() => after.mutex(play.name).tryAcquire())
      play.reads(b, lease.token)()
      a.believes(old)
      staleWrite()
      await b.releases(() => lease.release())
    },
  },
}

async function pairOf(play: Play): Promise<RedisPair> {
  const pair = await play.servers.redisPair?.()
  if (pair === undefined) throw new Error('there is no Redis')
  play.finally(() => pair.stop())
  return pair
}
