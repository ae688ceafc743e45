import { setTimeout as sleep } from 'node:timers/promises'

import { expect, it, vi } from 'vitest'

import type { Store } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import type { Lease } from '../../../src/runtime/lease.ts'
import { request } from './short-run.ts'

export interface Waiting {
  /** A store with a pool of its own, of ten connections. */
  readonly open: () => Store
  /** As many stores on one such pool. */
  readonly openMany: (count: number) => readonly Store[]
  /** Opens a transaction of the user's and guards it by hand; returns what ends it. */
  readonly guard: (lease: Lease) => Promise<() => Promise<void>>
  /** Locks the row of a name, as no statement of ours does; returns what ends it. */
  readonly lockRow: (name: string) => Promise<() => Promise<void>>
  /** Connections at the server, and how many of them wait for a lock there. */
  readonly connections: () => Promise<{ readonly all: number; readonly waiting: number }>
}

const many = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index)

/** What waits, and for how long, at the server. */
export function waitingCases(open: () => Waiting): void {
  it('keeps at most three connections for each process that waits behind a transaction that hangs', async () => {
    const { guard, connections, ...world } = open()
    const before = await connections()
    const holder = new Holdfast(world.open(), { ttl: 600, requestTimeout: 300 })
    const lease = await holder.mutex('hangs').acquire()
    const end = await guard(lease)
    // The holder is silent: the others find that its time is over, and that it guards something.
    await holder.close({ release: false })
    const waiters = many(5).map(() => new Holdfast(world.open(), { requestTimeout: 300 }))
    const waits = waiters.map((waiter) => waiter.mutex('hangs').acquire({ wait: 30_000 }))
    const most = { all: 0, waiting: 0 }
    for (let look = 0; look < 15; look++) {
      await sleep(150)
      const seen = await connections()
      most.all = Math.max(most.all, seen.all - before.all)
      most.waiting = Math.max(most.waiting, seen.waiting)
    }
    await end()
    const first = await Promise.race(waits)
    expect(first.token).toBeGreaterThan(lease.token)
    // The holder's own, and that of the transaction, come on top.
    expect(most.all).toBeLessThanOrEqual(3 * waiters.length + 3)
    expect(most.waiting).toBe(0)
    for (const wait of waits) wait.then((got) => got.release()).catch(() => {})
    await Promise.all(waiters.map((waiter) => waiter.close({ drain: 0 })))
  })

  it('ends at the server what was given up here', async () => {
    const { lockRow, connections, ...world } = open()
    const store = world.open()
    const claim = request('given up')
    expect(await store.claim(claim, 5000)).toMatchObject({ kind: 'held' })
    const end = await lockRow('given up')
    for (let round = 0; round < 4; round++) {
      expect(await store.withdraw(claim, 200)).toMatchObject({ kind: 'unknown' })
    }
    // Seldom enough: InnoDB shows its list anew only if nobody has read it for a tenth of a second.
    const seldom = { timeout: 10_000, interval: 300 }
    await vi.waitFor(async () => expect((await connections()).waiting).toBe(0), seldom)
    await end()
    expect(await store.withdraw(claim, 5000)).toMatchObject({ kind: 'released' })
  })

  it('has many stores of one process use few connections for one name, and answers all of them', async () => {
    const { openMany, connections } = open()
    const stores = openMany(25)
    const claims = many(100).map((index) => ({ ...request('thronged'), id: `throng.${index}` }))
    const asked = many(100).map((index) => stores[index % stores.length])
    const [first] = stores
    expect(await first?.claim(request('thronged'), 20_000)).toMatchObject({ kind: 'held' })
    const before = await connections()
    let [most, over] = [0, false]
    const all = Promise.all(
      claims.map(async (claim, index) => [
        (await asked[index]?.claim(claim, 20_000))?.kind,
        (await asked[index]?.withdraw(claim, 20_000))?.kind,
      ]),
    ).finally(() => (over = true))
    while (!over) most = Math.max(most, (await connections()).all - before.all)
    expect(new Set((await all).map(String))).toEqual(new Set(['queued,released']))
    expect(most).toBeLessThanOrEqual(3)
  })

  it('renews what is held while a crowd waits for one row, on all the connections that it may have', async () => {
    const { lockRow, ...world } = open()
    const store = world.open()
    const [held, hung] = [request('beside a crowd'), request('crowded')]
    for (const claim of [held, hung]) expect(await store.claim(claim, 5000)).toMatchObject({ kind: 'held' })
    const end = await lockRow('crowded')
    // More than the pool has connections, and no two in one statement.
    const crowd = many(40).map(async () => store.withdraw(hung, 20_000))
    await sleep(300)
    expect(await store.renew([{ ...held, tokens: 0 }], 8000)).toEqual([
      expect.objectContaining({ kind: 'renewed' }),
    ])
    await end()
    const answers = await Promise.all(crowd)
    expect(answers.every(({ kind }) => kind === 'released' || kind === 'not-held')).toBe(true)
  })
}
