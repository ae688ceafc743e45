import { describe, expect, it } from 'vitest'

import type { NameInfo } from '../../../src/core/contract.ts'
import type { Holdfast, Lease } from '../../../src/index.ts'
import { cached, leader, once, stripedStock } from '../../../src/recipes/index.ts'
import { world } from '../runtime/far-store.ts'
import type { ProcessEnv } from '../runtime/far-store.ts'
import { HOUR } from './fleet.ts'

/** A process that is stopped for longer than its ttl hears the answers that came meanwhile before any of its timers. */
const STOP_MS = 20_000
const TTL = 5000
/** More than any of these has. */
const ANSWERS = 12

interface Stage {
  readonly holdfast: Holdfast
  readonly env: ProcessEnv
  /** The user's function begins: then the store has the lock for it. */
  readonly begins: (name: string, token: bigint) => void
  /** An answer that the process hears, of a cache or a storage. */
  readonly heard: <A>(answer: A) => Promise<A>
}

const cacheOf = ({ heard }: Stage) => ({
  get: () => heard(undefined),
  set: () => heard(1),
  delete: () => heard(1),
})

const beginsWith =
  ({ begins }: Stage) =>
  ({ name, token }: Pick<Lease, 'name' | 'token'>): void =>
    begins(name, token)

const PLAYS: Readonly<Record<string, (stage: Stage) => Promise<unknown>>> = {
  'a mutex': (stage) => stage.holdfast.mutex('x').run(beginsWith(stage)),
  'a writer': (stage) => stage.holdfast.readWriteLock('x').write.run(beginsWith(stage)),
  permits: (stage) => stage.holdfast.semaphore('x', 3).run(beginsWith(stage), { permits: 2 }),
  'a set': (stage) =>
    stage.holdfast.all(['x', 'y']).run(({ leases }) => leases.forEach((lease) => beginsWith(stage)(lease))),
  once: ({ holdfast, env, begins }) =>
    once(holdfast, 'x', { every: HOUR, env, run: ({ token }) => begins('x', token) }).tick(),
  'once, with a memory': (stage) => {
    const { holdfast, env, begins } = stage
    const run = ({ token }: { token: bigint }): void => begins('x', token)
    return once(holdfast, 'x', { every: HOUR, env, memory: cacheOf(stage), run }).tick()
  },
  cached: (stage) => {
    const { holdfast, env, begins } = stage
    return cached(holdfast, {
      cache: cacheOf(stage),
      key: 'k',
      ttl: HOUR,
      env,
      load: (_, { token }) => begins('cache:k', token),
    }).get()
  },
  leader: async ({ holdfast, env, begins }) => {
    const candidate = leader(holdfast, 'x', {
      env,
      onElected: (_, term) => {
        begins('x', term.token)
        term.resign()
      },
    })
    await env.sleep(1000)
    await candidate.stop()
  },
  'a stock': ({ holdfast, begins, heard }) => {
    const storage = {
      read: () => heard(9),
      write: (segment: number, _value: number, token: bigint) => {
        begins(`x#${segment}`, token)
        return heard(true)
      },
    }
    // Of one segment the second has to look at all.
    return stripedStock(holdfast, 'x', { segments: 2, storage }).take(3)
  },
}

describe.each(Object.entries(PLAYS))('after a long stop nothing begins without its lock: %s', (_, play) => {
  it('whatever it was that the process waited for', async () => {
    let begun = 0
    const without: number[] = []
    for (let stopAt = 0; stopAt <= ANSWERS; stopAt++) {
      const w = world()
      const { holdfast, store, env } = w.process({ ttl: TTL })
      let answers = 0
      const heard = async <A>(answer: A): Promise<A> => {
        if (++answers === stopAt) w.env.stall(STOP_MS)
        return answer
      }
      const { claim, renew, release } = store
      store.claim = async (...args) => heard(await claim(...args))
      store.renew = async (...args) => heard(await renew(...args))
      store.release = async (...args) => heard(await release(...args))
      const begins: Stage['begins'] = (name, token) => {
        begun++
        const { holders } = w.server.inspect(name, 1000) as NameInfo
        const holds = holders.some((holder) => holder.token === token)
        if (!holds) without.push(stopAt)
      }
      await w.env.until(play({ holdfast, env, begins, heard }).catch(() => undefined))
      await w.env.until(holdfast.close())
    }
    expect(without).toEqual([])
    expect(begun).toBeGreaterThan(ANSWERS / 2)
  })
})
