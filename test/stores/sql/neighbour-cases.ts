import { setTimeout as sleep } from 'node:timers/promises'

import { expect, it } from 'vitest'

import type { Store } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import type { Lease } from '../../../src/runtime/lease.ts'
import type { GuardedLease } from '../../../src/stores/sql/guarded.ts'

export interface Neighbourhood {
  /** A store with a pool of its own: another process, as far as the server can tell. */
  readonly open: () => Store & { guarded<T>(lease: GuardedLease, work: () => Promise<T>): Promise<T> }
  /** A transaction of the user's that is guarded by hand, and how it ends. */
  readonly guard: (lease: Lease) => Promise<() => Promise<void>>
}

const TTL = 2400
/** Nothing would be left of a lease that was not renewed. */
const LONG = 2 * TTL

const many = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index)

/** Once more on a machine that gave this process no time to renew anything: what is wrong here is so every time. */
const AGAIN = { retry: 2 }
/** Names of an attempt that failed may be held still. */
let attempts = 0

/** A guarded transaction costs nobody else a lease, in whatever process, nor its own. They wait most of the time: all at once. */
export function neighbourCases(neighbourhood: () => Neighbourhood): void {
  it.concurrent(
    'costs none of forty leases of another process anything, in a table of a hundred names',
    AGAIN,
    async () => {
      const { open } = neighbourhood()
      const attempt = (attempts += 1)
      const [store, other] = [open(), open()]
      const [mine, theirs] = [new Holdfast(store, { ttl: TTL }), new Holdfast(other, { ttl: TTL })]
      for (const index of many(100)) await theirs.mutex(`neighbour ${index} ${attempt}`).run(() => {})
      const leases = await Promise.all(
        many(40).map((index) => theirs.mutex(`neighbour ${index * 2} ${attempt}`).acquire()),
      )
      const guarding = await mine.mutex(`neighbour 41 ${attempt}`).acquire()
      await store.guarded(guarding, () => sleep(LONG))
      expect([...leases, guarding].filter(({ held }) => !held)).toEqual([])
      await Promise.all([mine.close({ drain: 0 }), theirs.close({ drain: 0 })])
    },
  )

  it.concurrent(
    'costs no other permit of the same name anything, while transactions of six overlap all the time',
    AGAIN,
    async () => {
      const { open } = neighbourhood()
      const attempt = (attempts += 1)
      const processes = many(6).map(() => {
        const store = open()
        return { store, holdfast: new Holdfast(store, { ttl: TTL }) }
      })
      const until = performance.now() + LONG
      const lost = await Promise.all(
        processes.map(async ({ store, holdfast }, index) => {
          const lease = await holdfast.semaphore(`neighbour permits ${attempt}`, 6).acquire()
          await sleep(index * 30)
          while (performance.now() < until) await store.guarded(lease, () => sleep(200))
          return !lease.held
        }),
      )
      expect(lost).toEqual(many(6).map(() => false))
      await Promise.all(processes.map(({ holdfast }) => holdfast.close({ drain: 0 })))
    },
  )

  it.concurrent(
    'costs nothing either when there are more of them at once than the pool has connections',
    AGAIN,
    async () => {
      const { open } = neighbourhood()
      const attempt = (attempts += 1)
      const store = open()
      const holdfast = new Holdfast(store, { ttl: TTL })
      const leases = await Promise.all(
        many(12).map((index) => holdfast.mutex(`crowded ${index} ${attempt}`).acquire()),
      )
      const order: string[] = []
      await Promise.all(
        leases.slice(0, 8).map((lease) =>
          store.guarded(lease, async () => {
            order.push('in')
            await sleep(TTL)
            order.push('out')
          }),
        ),
      )
      expect(leases.filter(({ held }) => !held)).toEqual([])
      expect(order).toHaveLength(16)
      await holdfast.close({ drain: 0 })
    },
  )

  it.concurrent(
    'costs nothing either when it is guarded by hand, and lets nobody take the lock before its end',
    AGAIN,
    async () => {
      const { open, guard } = neighbourhood()
      const attempt = (attempts += 1)
      const [mine, theirs] = [new Holdfast(open(), { ttl: TTL }), new Holdfast(open(), { ttl: TTL })]
      const [beside, guarding] = [
        await mine.mutex(`by hand ${attempt}`).acquire(),
        await mine.mutex(`by hand 2 ${attempt}`).acquire(),
      ]
      const end = await guard(guarding)
      await sleep(LONG)
      expect([beside.held, guarding.held]).toEqual([true, true])
      // Given up in the middle of it: the next one has to wait for the transaction.
      const order: string[] = []
      const released = guarding.release()
      const next = theirs.mutex(`by hand 2 ${attempt}`).acquire({ wait: 20_000 })
      const taken = next.then(() => order.push('taken'))
      await sleep(300)
      order.push('ended')
      await end()
      await Promise.all([released, taken])
      expect(order).toEqual(['ended', 'taken'])
      await Promise.all([mine.close({ drain: 0 }), theirs.close({ drain: 0 })])
    },
  )

  it('lets no writer in before the end of what one of several readers with one claim guards', async () => {
    const { open, guard } = neighbourhood()
    const [mine, theirs] = [new Holdfast(open()), new Holdfast(open())]
    const name = `readers ${(attempts += 1)}`
    const { read } = mine.readWriteLock(name)
    const [guarding, beside] = [await read.acquire(), await read.acquire()]
    expect((await mine.inspect(name)).holders).toHaveLength(1)
    const end = await guard(guarding)
    const order: string[] = []
    // The first to go leaves the claim to the other, the second gives it up.
    expect(await guarding.release()).toBe('released')
    const released = beside.release()
    const write = theirs.readWriteLock(name).write.acquire({ wait: 20_000 })
    const written = write.then(async (lease) => {
      order.push('written')
      await lease.release()
    })
    await sleep(300)
    order.push('ended')
    await end()
    await Promise.all([released, written])
    expect(order).toEqual(['ended', 'written'])
    await Promise.all([mine.close(), theirs.close()])
  })
}
