import { setTimeout as sleep } from 'node:timers/promises'

import type { Redis } from 'ioredis'

import { FaultProxy } from '../../testkit/fault-proxy.ts'
import { Breakpoints } from './breakpoints.ts'
import type { Play } from './play.ts'
import { belief } from './play.ts'
import { redisClient } from './redis-client.ts'
import type { Specimen } from './specimen.ts'

const SHORT = 300
const LONG = 10_000

/** Taken in the right way, given back in a wrong one. */
class ExpiringLock {
  readonly points: Breakpoints = new Breakpoints()
  readonly redis: Redis
  private readonly key: string
  private readonly value: string

  constructor(redis: Redis, key: string, value: string) {
    this.redis = redis
    this.key = key
    this.value = value
  }

  async tryAcquire(ttl: number): Promise<boolean> {
    return (await this.redis.set(this.key, this.value, 'PX', ttl, 'NX')) === 'OK'
  }

  /** Whoever holds it. */
  async releaseAnybodys(): Promise<void> {
    await this.redis.del(this.key)
  }

  /** One's own, as far as one knew a moment ago. */
  async releaseOwn(): Promise<void> {
    if ((await this.redis.get(this.key)) !== this.value) return
    await this.points.pass('between GET and DEL')
    await this.redis.del(this.key)
  }
}

type Take = (lock: ExpiringLock, ttl: number) => () => Promise<ReturnType<typeof belief> | null>

const taker =
  (play: Play): Take =>
  (lock, ttl) =>
  async () => {
    const held = belief(play.serial(), ttl)
    return (await lock.tryAcquire(ttl)) ? held : null
  }

/** A's lease runs out, B takes the lock, A gives back what is no longer its own, C finds it free. */
export const delByAnyone: Specimen = {
  id: 'del-by-anyone',
  title: 'DEL by anyone',
  flaw: "a holder whose lease ran out deletes the next holder's lock",
  needs: 'redis',
  fault: 'holder stands still for longer than its lease',
  caughtBy: 'exclusivity',

  async flawed(play: Play) {
    const [a, b, c] = [play.actor('A'), play.actor('B'), play.actor('C')]
    const [one, two, three] = locksOf(play)
    const take = taker(play)
    await a.takes(take(one, SHORT))
    const awake = play.diary.faultBegins('pause', 'A', { detail: 'the holder stands still' })
    await play.mustGet(b, take(two, LONG), SHORT * 4)
    awake()
    await a.releases(() => one.releaseAnybodys())
    await c.tries(take(three, LONG))
    await sleep(20)
  },

  ours: {
    async run(play) {
      const url = play.servers.redis?.url ?? ''
      const [a, b, c] = [play.actor('A'), play.actor('B'), play.actor('C')]
      const holdfasts = await Promise.all([SHORT, LONG, LONG].map((ttl) => play.holdfast(url, { ttl })))
      const [one, two, three] = holdfasts.map((holdfast) => holdfast.mutex(play.name, { renew: false }))
      if (one === undefined || two === undefined || three === undefined) return
      const stale = await a.takes(() => one.tryAcquire())
      const awake = play.diary.faultBegins('pause', 'A', { detail: 'the holder stands still' })
      const lease = await play.mustGet(b, () => two.tryAcquire(), SHORT * 4)
      awake()
      await a.releases(() => stale.release())
      await c.tries(() => three.tryAcquire())
      if (lease !== null) await b.releases(() => lease.release())
    },
  },
}

export const getThenDel: Specimen = {
  id: 'get-then-del',
  title: 'GET, then DEL',
  flaw: 'the lease can run out between the two: the same flaw in a smaller window',
  needs: 'redis',
  fault: 'holder stands still between two commands',
  caughtBy: 'exclusivity',

  async flawed(play: Play) {
    const [a, b, c] = [play.actor('A'), play.actor('B'), play.actor('C')]
    const [one, two, three] = locksOf(play)
    const take = taker(play)
    await a.takes(take(one, SHORT))
    const { reached, go } = one.points.stopAt('between GET and DEL')
    const releasing = a.releases(() => one.releaseOwn())
    await reached
    const awake = play.diary.faultBegins('pause', 'A', {
      detail: 'the holder stands still between GET and DEL',
    })
    await play.mustGet(b, take(two, LONG), SHORT * 4)
    awake()
    go()
    await releasing
    await c.tries(take(three, LONG))
    await sleep(20)
  },

  ours: {
    async run(play) {
      const { redis } = play.servers
      if (redis === undefined) throw new Error('there is no Redis')
      const proxy = await FaultProxy.open(redis)
      play.finally(() => proxy.close())
      const [a, b, c] = [play.actor('A'), play.actor('B'), play.actor('C')]
      const late = await play.holdfast(`redis://${proxy.host}:${proxy.port}`, { ttl: SHORT })
      const two = await play.holdfast(redis.url, { ttl: LONG })
      const three = await play.holdfast(redis.url, { ttl: LONG })
      const stale = await a.takes(() => late.mutex(play.name, { renew: false }).tryAcquire())
      // There is one request where the other has two; so it is the network that stands still.
      proxy.set('requests', { hold: true })
      const healed = play.diary.faultBegins('delay', 'A', {
        detail: 'the release is on its way for longer than the lease',
      })
      const releasing = a.releases(() => stale.release())
      const lease = await play.mustGet(b, () => two.mutex(play.name).tryAcquire(), SHORT * 4)
      proxy.heal()
      healed()
      await releasing
      await c.tries(() => three.mutex(play.name).tryAcquire())
      if (lease !== null) await b.releases(() => lease.release())
    },
  },
}

function locksOf(play: Play): [ExpiringLock, ExpiringLock, ExpiringLock] {
  const make = (value: string): ExpiringLock =>
    new ExpiringLock(redisClient(play, play.servers.redis), play.name, value)
  const locks: [ExpiringLock, ExpiringLock, ExpiringLock] = [make('A'), make('B'), make('C')]
  play.finally(() => locks[2].releaseAnybodys())
  return locks
}
