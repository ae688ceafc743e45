import type { Redis } from 'ioredis'

import type { Holdfast } from '../../locks/holdfast.ts'
import { systemEnv } from '../../runtime/env.ts'
import type { Env } from '../../runtime/env.ts'
import type { Lease } from '../../runtime/lease.ts'
import { Breakpoints } from './breakpoints.ts'
import type { Actor, Play } from './play.ts'
import { belief } from './play.ts'
import { redisClient } from './redis-client.ts'
import type { Specimen } from './specimen.ts'

const TTL = 10_000
const AHEAD = 60_000

/** The time at which the lock ends is its value; who finds it past replaces it with `GETSET`, and wins if nobody was faster. */
class TimestampLock {
  readonly points: Breakpoints = new Breakpoints()
  private readonly redis: Redis
  private readonly key: string
  private readonly clock: () => number
  private mine = ''

  constructor(redis: Redis, key: string, clock: () => number = Date.now) {
    this.redis = redis
    this.key = key
    this.clock = clock
  }

  async tryAcquire(ttl: number): Promise<boolean> {
    this.mine = String(this.clock() + ttl)
    if ((await this.redis.setnx(this.key, this.mine)) === 1) return true
    const theirs = await this.redis.get(this.key)
    if (theirs === null || Number(theirs) > this.clock()) return false
    await this.points.pass('between GET and GETSET')
    return (await this.redis.getset(this.key, this.mine)) === theirs
  }

  async release(): Promise<void> {
    if ((await this.redis.get(this.key)) === this.mine) await this.redis.del(this.key)
  }
}

export const getsetClocks: Specimen = {
  id: 'getset-clocks',
  title: 'GETSET of timestamps, clocks that differ',
  flaw: 'a client whose clock is ahead takes a lock that is still held',
  needs: 'redis',
  fault: "a client's wall clock is ahead",
  caughtBy: 'exclusivity',

  async flawed(play: Play) {
    const [a, b] = [play.actor('A'), play.actor('B')]
    const one = new TimestampLock(redisClient(play, play.servers.redis), play.name)
    const ahead = new TimestampLock(
      redisClient(play, play.servers.redis),
      play.name,
      () => Date.now() + AHEAD,
    )
    play.finally(() => ahead.release())
    const take = (lock: TimestampLock) => async () =>
      (await lock.tryAcquire(TTL)) ? belief(play.serial(), TTL) : null
    await a.takes(take(one))
    play.diary.fault('clock', 'B', `its wall clock is ${AHEAD / 1000} s ahead`)
    await b.tries(take(ahead))
  },

  ours: {
    async run(play) {
      const url = play.servers.redis?.url ?? ''
      const [a, b] = [play.actor('A'), play.actor('B')]
      const env: Env = { ...systemEnv, wall: () => Date.now() + AHEAD }
      const one = await play.holdfast(url, { ttl: TTL })
      const ahead = await play.holdfast(url, { ttl: TTL, env })
      const lease = await a.takes(() => one.mutex(play.name).tryAcquire())
      play.diary.fault('clock', 'B', `its wall clock is ${AHEAD / 1000} s ahead`)
      const taken = await b.tries(() => ahead.mutex(play.name).tryAcquire())
      if (taken !== null) await b.releases(() => taken.release())
      await a.releases(() => lease.release())
    },
  },
}

export const getsetLosers: Specimen = {
  id: 'getset-losers',
  title: 'GETSET of timestamps, two at once',
  flaw: 'who loses has already replaced the value: the winner cannot give its lock back, and it lasts for longer',
  needs: 'redis',
  fault: 'two find the same lock past its time',
  caughtBy: 'liveness',

  async flawed(play: Play) {
    const connection = redisClient(play, play.servers.redis)
    await connection.set(play.name, String(Date.now() - 1))
    play.diary.fault('kill', 'A', 'a holder crashed; its time is past')
    play.finally(() => connection.del(play.name))
    const [b, c, d] = [play.actor('B'), play.actor('C'), play.actor('D')]
    const locks = [b, c, d].map(() => new TimestampLock(redisClient(play, play.servers.redis), play.name))
    const [two, three, four] = locks
    if (two === undefined || three === undefined || four === undefined) return
    const take = (lock: TimestampLock, ttl: number) => async () =>
      (await lock.tryAcquire(ttl)) ? belief(play.serial(), ttl) : null
    const [first, second] = [two, three].map((lock) => lock.points.stopAt('between GET and GETSET'))
    const winning = b.takes(take(two, TTL))
    const losing = c.tries(take(three, TTL + 1))
    await Promise.all([first?.reached, second?.reached])
    first?.go()
    await winning
    second?.go()
    await losing
    await b.releases(() => two.release())
    await play.mustGet(d, take(four, TTL), 1000)
  },

  ours: {
    async run(play) {
      const url = play.servers.redis?.url ?? ''
      const dead = await play.process(url, { ttl: 300 })
      await dead.acquire(play.name)
      await dead.kill()
      play.adopt('A', dead)
      play.diary.fault('kill', 'A', 'a holder crashes')
      const [b, c, d] = [play.actor('B'), play.actor('C'), play.actor('D')]
      const [two, three, four] = await Promise.all([b, c, d].map(() => play.holdfast(url, { ttl: TTL })))
      if (two === undefined || three === undefined || four === undefined) return
      const stop = new AbortController()
      const ask = async (
        actor: Actor,
        holdfast: Holdfast,
      ): Promise<{ actor: Actor; lease: Lease } | null> => {
        const { signal } = stop
        const lease = await actor.tries(() =>
          holdfast
            .mutex(play.name)
            .acquire({ signal })
            .catch(() => null),
        )
        if (lease === null) return null
        // The other one gives up.
        stop.abort()
        return { actor, lease }
      }
      const both = await Promise.all([ask(b, two), ask(c, three)])
      const winner = both.find((one) => one !== null)
      if (winner === null || winner === undefined) throw new Error('nobody got the lock')
      await winner.actor.releases(() => winner.lease.release())
      const lease = await play.mustGet(d, () => four.mutex(play.name).tryAcquire(), 1000)
      if (lease !== null) await d.releases(() => lease.release())
    },
  },
}
