import { setTimeout as sleep } from 'node:timers/promises'

import type { Redis } from 'ioredis'

import { FaultProxy } from '../../testkit/fault-proxy.ts'
import type { Play } from './play.ts'
import { belief } from './play.ts'
import { redisClient } from './redis-client.ts'
import type { Specimen } from './specimen.ts'

const WAITERS = 4
const EVERY = 100
const SETTLED = 500
const WATCHED = 1500
/** A sign of life now and then is all that a waiter owes. */
const ENOUGH = WAITERS * 2

interface Counted {
  readonly proxy: FaultProxy
  requests: number
}

/** Asks every 100 ms. Right in what it answers, wrong in what it costs. */
async function spin(redis: Redis, key: string, stop: AbortSignal): Promise<boolean> {
  while (!stop.aborted) {
    if ((await redis.set(key, 'taken', 'PX', 60_000, 'NX')) === 'OK') return true
    await sleep(EVERY)
  }
  return false
}

export const spinning: Specimen = {
  id: 'spinning',
  title: 'Waiting by asking every 100 ms',
  flaw: 'costs the server a request per waiter ten times a second, and the waiter 50 ms on average',
  needs: 'redis',
  fault: 'the lock is held for a while',
  caughtBy: 'polling',

  async flawed(play: Play) {
    const connection = redisClient(play, play.servers.redis)
    play.finally(() => connection.del(play.name))
    const a = play.actor('A')
    await a.takes(async () => {
      await connection.set(play.name, 'taken', 'PX', 60_000, 'NX')
      return belief(play.serial())
    })
    const stop = new AbortController()
    const counted = await countedProxy(play)
    const waiting = waiters(play).map((actor) => {
      const redis = redisClient(play, counted.proxy)
      return actor.tries(async () =>
        (await spin(redis, play.name, stop.signal)) ? belief(play.serial()) : null,
      )
    })
    await count(play, counted)
    stop.abort()
    await Promise.all(waiting)
  },

  ours: {
    async run(play) {
      const url = play.servers.redis?.url ?? ''
      const a = play.actor('A')
      const holdfast = await play.holdfast(url)
      const lease = await a.takes(() => holdfast.mutex(play.name).tryAcquire())
      const stop = new AbortController()
      const counted = await countedProxy(play)
      const waiting = waiters(play).map(async (actor) => {
        const own = await play.holdfast(`redis://${counted.proxy.host}:${counted.proxy.port}`)
        await actor.tries(() =>
          own
            .mutex(play.name)
            .acquire({ signal: stop.signal })
            .catch(() => null),
        )
      })
      // Until all of them stand in line, what they send is not waiting.
      while ((await holdfast.inspect(play.name)).waiters.length < WAITERS) await sleep(20)
      await count(play, counted)
      stop.abort()
      await Promise.all(waiting)
      await a.releases(() => lease.release())
    },
  },
}

const waiters = (play: Play) =>
  Array.from({ length: WAITERS }, (_, index) => play.actor(`waiter ${index + 1}`))

/** A way to the server on which every message can be counted. */
async function countedProxy(play: Play): Promise<Counted> {
  const { redis } = play.servers
  if (redis === undefined) throw new Error('there is no Redis')
  const proxy = await FaultProxy.open(redis)
  play.finally(() => proxy.close())
  const counted = { proxy, requests: 0 }
  const look = (): boolean => {
    counted.requests += 1
    return false
  }
  proxy.cutReply({ match: look }).catch(() => undefined)
  return counted
}

/** How many messages the server gets from waiters while nothing happens. */
async function count(play: Play, counted: Counted): Promise<void> {
  await sleep(SETTLED)
  const before = counted.requests
  await sleep(WATCHED)
  const requests = counted.requests - before
  play.measured('polling', requests, ENOUGH, `requests in ${WATCHED} ms while ${WAITERS} wait`)
}
