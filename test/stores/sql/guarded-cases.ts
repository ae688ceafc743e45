import { setTimeout as sleep } from 'node:timers/promises'

import { expect, it } from 'vitest'

import type { Store } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import type { GuardedLease } from '../../../src/stores/sql/guarded.ts'

/** A store whose database has the table `entries (line text)`. */
export interface GuardedDatabase<Tx> {
  readonly open: () => Store & { guarded<T>(lease: GuardedLease, work: (tx: Tx) => Promise<T>): Promise<T> }
  readonly write: (tx: Tx, line: string) => Promise<unknown>
  readonly lines: () => Promise<readonly string[]>
}

let attempts = 0

/** What a transaction that is guarded by a lease must do. */
export function guardedCases<Tx>(database: () => GuardedDatabase<Tx>): void {
  it('commits what was written while the lease stands, and gives back the result', async () => {
    const { open, write, lines } = database()
    const store = open()
    const holdfast = new Holdfast(store)
    const result = await holdfast.mutex('guard:commit').run((lease) =>
      store.guarded(lease, async (tx) => {
        await write(tx, 'guard:commit')
        return 42
      }),
    )
    expect(result).toBe(42)
    expect(await lines()).toContain('guard:commit')
    await holdfast.close({ drain: 0 })
  })

  it('commits for every task that a grant is handed to', async () => {
    const { open, write, lines } = database()
    const store = open()
    const holdfast = new Holdfast(store)
    const names = Array.from({ length: 20 }, (_, index) => `guard:turn:${index}`)
    await Promise.all(
      names.map((line) =>
        holdfast.mutex('guard:turn').run((lease) => store.guarded(lease, (tx) => write(tx, line))),
      ),
    )
    expect((await lines()).filter((line) => line.startsWith('guard:turn')).toSorted()).toEqual(
      names.toSorted(),
    )
    await holdfast.close({ drain: 0 })
  })

  it('guards readers and permits, each by its own grant', async () => {
    const { open, write, lines } = database()
    const store = open()
    const [a, b] = [new Holdfast(store), new Holdfast(store)]
    const leases = await Promise.all([
      a.semaphore('guard:permits', 3).acquire(),
      b.semaphore('guard:permits', 3).acquire(),
    ])
    for (const lease of leases) await store.guarded(lease, (tx) => write(tx, 'guard:permits'))
    const [first] = leases
    await first.release()
    await expect(store.guarded(first, (tx) => write(tx, 'guard:permits'))).rejects.toMatchObject({
      code: 'LOCK_LOST',
    })
    expect((await lines()).filter((line) => line === 'guard:permits')).toHaveLength(2)
    await Promise.all([a.close({ drain: 0 }), b.close({ drain: 0 })])
  })

  it('rolls back when the work fails', async () => {
    const { open, write, lines } = database()
    const store = open()
    const holdfast = new Holdfast(store)
    const failed = holdfast.mutex('guard:throw').run((lease) =>
      store.guarded(lease, async (tx) => {
        await write(tx, 'guard:throw')
        throw new Error('no')
      }),
    )
    await expect(failed).rejects.toThrow('no')
    expect(await lines()).not.toContain('guard:throw')
    await holdfast.close({ drain: 0 })
  })

  it('commits nothing for a lease that is over', async () => {
    const { open, write, lines } = database()
    const store = open()
    const [a, b] = [new Holdfast(store), new Holdfast(store)]
    const old = await a.mutex('guard:late').acquire()
    await old.release()
    const late = store.guarded(old, (tx) => write(tx, 'guard:late'))
    await expect(late).rejects.toMatchObject({ code: 'LOCK_LOST', lock: 'guard:late' })
    const next = await b.mutex('guard:late').acquire()
    await expect(store.guarded(old, (tx) => write(tx, 'guard:late'))).rejects.toMatchObject({
      code: 'LOCK_LOST',
    })
    await next.release()
    expect(await lines()).not.toContain('guard:late')
    await Promise.all([a.close({ drain: 0 }), b.close({ drain: 0 })])
  })

  it('keeps everybody else out to its end, also when the lease runs out before, and commits nothing then', async () => {
    const { open, write, lines } = database()
    const store = open()
    const [slow, thief] = [new Holdfast(store), new Holdfast(open())]
    const lease = await slow.mutex('guard:thief', { ttl: 300, renew: false }).acquire()
    const order: string[] = []
    const guarded = store.guarded(lease, async (tx) => {
      await write(tx, 'guard:thief')
      await sleep(900)
      order.push('written')
    })
    await sleep(100)
    const stealing = thief.mutex('guard:thief').acquire({ wait: 20_000 })
    await expect(guarded).rejects.toMatchObject({ code: 'LOCK_LOST' })
    const stolen = await stealing.finally(() => order.push('stolen'))
    expect(order).toEqual(['written', 'stolen'])
    expect(stolen.token).toBeGreaterThan(lease.token)
    expect(await lines()).not.toContain('guard:thief')
    await stolen.release()
    await Promise.all([slow.close({ drain: 0 }), thief.close({ drain: 0 })])
  })

  // Once more on a machine that gave this process no time to renew anything.
  it('keeps no lease from being renewed, its own neither, however long it takes', { retry: 2 }, async () => {
    const { open } = database()
    const store = open()
    const holdfast = new Holdfast(store, { ttl: 1800 })
    const attempt = (attempts += 1)
    const names = ['guard:a', 'guard:b', 'guard:z'].map((name) => `${name}:${attempt}`)
    const leases = await Promise.all(names.map((name) => holdfast.mutex(name).acquire()))
    const [, guarded] = leases
    if (guarded === undefined) throw new Error('no lease')
    await store.guarded(guarded, () => sleep(4000))
    expect(leases.map(({ held }) => held)).toEqual([true, true, true])
    await holdfast.close({ drain: 0 })
  })
}
