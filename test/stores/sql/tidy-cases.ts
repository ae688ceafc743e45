import { expect, it } from 'vitest'

import type { Store } from '../../../src/core/contract.ts'
import type { Tidied, TidyOptions } from '../../../src/stores/sql/tidy.ts'
import { request } from './short-run.ts'

type TidyStore = Store & { tidy(options?: TidyOptions): Promise<Tidied> }

export interface TidyWorld {
  /** On a table of its own, which is empty, with a clock that stands still. */
  readonly open: (options?: { readonly keepIdle?: number }) => TidyStore
  readonly setClock: (micros: number) => Promise<void>
  readonly rows: () => Promise<readonly { readonly name: string; readonly version: number }[]>
}

const TIMEOUT = 5000
const START = 1_794_780_646_000_000
const HOUR = 3_600_000

/** What a store does with names that nobody uses any more. */
export function tidyCases(world: () => Promise<TidyWorld>): void {
  const use = async (store: Store, name: string): Promise<bigint> => {
    const claim = request(name)
    const answer = await store.claim(claim, TIMEOUT)
    if (answer.kind !== 'held') throw new Error(answer.kind)
    await store.release(claim, undefined, TIMEOUT)
    return answer.token
  }
  const names = async ({ rows }: TidyWorld): Promise<readonly string[]> =>
    (await rows()).map(({ name }) => name).toSorted()

  it('forgets names that were used once, by itself, while others are', async () => {
    const { open, setClock, rows } = await world()
    const store = open({ keepIdle: 100 })
    const all = open({ keepIdle: Infinity })
    for (let from = 0; from < 3000; from += 100) {
      // A thousand names a second, as far as the server can tell.
      await setClock(START + from * 1000)
      const hundred = Array.from({ length: 100 }, (_, index) => from + index)
      await Promise.all(
        hundred.map((index) =>
          use(from < 200 ? all : store, `once ${String(index * 7919).padStart(9, '0')}`),
        ),
      )
    }
    // A hundred are kept, and what the sweep has not come to.
    await expect.poll(async () => (await rows()).length, { timeout: 20_000 }).toBeLessThan(2000)
    // Nobody is at it any more.
    let length = 0
    const settled = async (): Promise<boolean> => {
      const before = length
      ;({ length } = await rows())
      return before === length && (await all.tidy({ idle: Infinity })).looked === length
    }
    await expect.poll(settled, { timeout: 20_000, interval: 200 }).toBe(true)
    expect(length).toBeGreaterThanOrEqual(100)
    await setClock(START + 10 * HOUR * 1000)
    expect(await store.tidy({ idle: HOUR })).toEqual({ looked: length, removed: length })
    expect(await rows()).toEqual([])
  })

  it('forgets what is over for long, also what the dead have left, and nothing else', async () => {
    const place = await world()
    const { open, setClock } = place
    const store = open()
    await setClock(START)
    await use(store, 'used')
    await store.claim(request('left by the dead', { ttl: 1000 }), TIMEOUT)
    await store.claim(request('permit of the dead', { ttl: 1000, capacity: 5 }), TIMEOUT)
    await store.claim(request('permit of the dead', { ttl: 1000, capacity: 5 }), TIMEOUT)
    await store.claim(request('left with a waiter', { ttl: 1000 }), TIMEOUT)
    await store.claim(request('left with a waiter', { ttl: 1000 }), TIMEOUT)
    await store.withdraw(request('withdrawn'), TIMEOUT)
    await store.claim(request('held for days', { ttl: 100 * HOUR }), TIMEOUT)
    const before = ['held for days', 'left by the dead', 'left with a waiter', 'permit of the dead', 'used']
    expect(await names(place)).toEqual([...before, 'withdrawn'])

    await setClock(START + (HOUR + 50_000) * 1000)
    await use(store, 'used lately')
    // A withdrawn claim is refused for a minute, and has to be over for an hour.
    await store.tidy()
    expect(await names(place)).toEqual(['held for days', 'used lately', 'withdrawn'])
    await setClock(START + 1.5 * HOUR * 1000)
    await store.tidy()
    expect(await names(place)).toEqual(['held for days', 'used lately'])
    expect(await store.inspect('held for days', TIMEOUT)).toMatchObject({ holders: [{}] })
  })

  it('gives larger tokens than before to a name that was forgotten, and a row that no old step fits', async () => {
    const { open, setClock, rows } = await world()
    const [store, other] = [open(), open()]
    await setClock(START)
    const first = await use(store, 'again')
    await use(other, 'again')
    const [old] = await rows()
    await setClock(START + 2 * HOUR * 1000)
    expect(await other.tidy()).toEqual({ looked: 1, removed: 1 })
    // One that knows the name, and one that has forgotten it.
    const [again, more] = [await use(store, 'again'), await use(other, 'again')]
    expect(again).toBeGreaterThan(first)
    expect(more).toBeGreaterThan(again)
    const [row] = await rows()
    expect(row?.version).toBeGreaterThan((old?.version ?? 0) + 1000)
  })

  it('does not forget a name that is not as idle as it is told', async () => {
    const { open, setClock } = await world()
    const store = open()
    await setClock(START)
    await use(store, 'fresh')
    await setClock(START + 1000 * 1000)
    expect(await store.tidy({ idle: 1001 })).toEqual({ looked: 1, removed: 0 })
    expect(await store.tidy({ idle: Infinity })).toEqual({ looked: 1, removed: 0 })
    expect(await store.tidy({ idle: 999 })).toEqual({ looked: 1, removed: 1 })
    await expect(store.tidy({ idle: Number.NaN })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(() => open({ keepIdle: -1 })).toThrow(/keepIdle/)
  })
}
