import { AsyncLocalStorage } from 'node:async_hooks'

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { LockAbortedError, LockLostError, LockReentryError } from '../../../src/index.ts'
import { stripedStock } from '../../../src/recipes/index.ts'
import type { StockStorage, Taken } from '../../../src/recipes/index.ts'
import { world } from '../runtime/far-store.ts'
import type { World } from '../runtime/far-store.ts'
import { Shelf } from './shelf.ts'

/** A process that sells from the shelf. While it is stopped, its requests arrive and their answers wait. */
function shop(w: World, shelf: Shelf, ttl = 3000) {
  const { holdfast, env, store } = w.process({ ttl })
  const heard = async <T>(answer: Promise<T>): Promise<T> => {
    const settled = await answer
    await env.sleep(0)
    return settled
  }
  const storage: StockStorage = {
    read: (segment) => heard(shelf.read(segment)),
    write: (segment, value, fence) => heard(shelf.write(segment, value, fence)),
  }
  const segments = shelf.values.length
  return { stock: stripedStock(holdfast, 'tickets', { segments, storage, env }), env, store }
}

type Shop = ReturnType<typeof shop>

const sum = (all: readonly (Taken | null)[]): number =>
  all.reduce((total, each) => total + (each?.quantity ?? 0), 0)

describe('a striped stock', () => {
  it.each([1, 2, 4, 8, 16])(
    'of 100 tickets in %i segments sells 100 to 150 customers at 3 processes',
    async (segments) => {
      const w = world()
      const shelf = new Shelf(w.env, Array<number>(segments).fill(0))
      shelf.latency = () => 1 + w.env.random() * 3
      const shops = Array.from({ length: 3 }, () => shop(w, shelf))
      await w.env.until(Promise.resolve(shops[0]?.stock.fill(100)))
      const taken = await w.env.until(
        Promise.all(Array.from({ length: 150 }, (_, n) => (shops[n % 3] as Shop).stock.take())),
      )
      expect(taken.filter((each) => each === null)).toHaveLength(50)
      expect(sum(taken)).toBe(100)
      expect(shelf.values).toEqual(Array(segments).fill(0))
      // No seat twice: segment and what was left there name the seat.
      const seats = taken.flatMap(
        (each) => each?.parts.map(({ segment, left }) => `${segment}/${left}`) ?? [],
      )
      expect(new Set(seats).size).toBe(100)
    },
  )

  it('is split in equal parts when filled', async () => {
    const w = world()
    const shelf = new Shelf(w.env, Array<number>(12).fill(7))
    const { stock, store } = shop(w, shelf)
    store.there = store.back = 1
    await w.env.until(stock.fill(101))
    expect(shelf.values).toEqual([9, 9, 9, 9, 9, 8, 8, 8, 8, 8, 8, 8])
    expect(await w.env.until(stock.total())).toBe(101)
    // Each with its own lock's token: the locks are taken one after the other, in the order of their names.
    expect(shelf.fences[10]).toBeLessThan(shelf.fences[2] ?? 0n)
  })

  it('is sold from all its segments by processes that sell one each', async () => {
    const w = world()
    const shelf = new Shelf(w.env, [9, 9, 9, 9])
    for (let n = 0; n < 20; n++) await w.env.until(shop(w, shelf).stock.take())
    expect(Math.max(...shelf.values)).toBeLessThan(9)
  })

  it('lets those who take from different segments work at the same time', async () => {
    const w = world()
    const timeFor = async (segments: number): Promise<number> => {
      const shelf = new Shelf(w.env, Array<number>(segments).fill(100))
      shelf.latency = () => 5
      const { stock } = shop(w, shelf)
      const began = w.env.mono()
      await w.env.until(Promise.all(Array.from({ length: 64 }, () => stock.take())))
      return w.env.mono() - began
    }
    expect(await timeFor(1)).toBe(64 * 10)
    expect(await timeFor(8)).toBe(8 * 10)
  })

  it('sends who comes where the fewest are, also when some have gone', async () => {
    const w = world()
    const shelf = new Shelf(w.env, [100, 100])
    shelf.latency = () => 5
    const { stock } = shop(w, shelf)
    for (let times = 0; times < 10; times++) {
      const three = [stock.take(), stock.take(), stock.take()]
      await w.env.until(Promise.race(three))
      await w.env.advance(1)
      // At one segment there is one left, at the other nobody.
      const began = w.env.mono()
      await w.env.until(stock.take())
      expect(w.env.mono() - began).toBe(10)
      await w.env.until(Promise.all(three))
    }
  })

  it('gives what several segments have only together', async () => {
    const w = world()
    const shelf = new Shelf(w.env, [2, 0, 1, 2])
    const { stock } = shop(w, shelf)
    const taken = await w.env.until(stock.take(4))
    expect(taken?.parts.map(({ segment, quantity, left }) => [segment, quantity, left])).toEqual([
      [0, 2, 0],
      [2, 1, 0],
      [3, 1, 1],
    ])
    expect(await w.env.until(stock.take(2))).toBe(null)
    expect(shelf.values).toEqual([0, 0, 0, 1])
  })

  it('writes for each customer in the context in which that one asked', async () => {
    const w = world()
    const customer = new AsyncLocalStorage<string>()
    const shelf = new Shelf(w.env, [6, 6, 6, 6])
    const written: Record<string, number> = {}
    const storage: StockStorage = {
      read: (segment) => shelf.read(segment),
      write: (segment, value, fence) => {
        const who = customer.getStore() ?? 'nobody'
        written[who] = (written[who] ?? 0) + (shelf.values[segment] ?? 0) - value
        return shelf.write(segment, value, fence)
      },
    }
    const { holdfast, env } = w.process()
    const stock = stripedStock(holdfast, 'tickets', { segments: 4, storage, env })
    const buy = (who: string, quantity: number): Promise<unknown> =>
      customer.run(who, () => stock.take(quantity))
    await w.env.until(Promise.all([buy('Ann', 7), buy('Bob', 8), buy('Cid', 9)]))
    expect(written).toEqual({ Ann: 7, Bob: 8, Cid: 9 })
  })

  it('reads in the context of somebody who waits for the look, and not of one who has gone', async () => {
    const w = world()
    const customer = new AsyncLocalStorage<{ gone: boolean }>()
    const shelf = new Shelf(w.env, [0, 0, 0])
    let foreign = 0
    const storage: StockStorage = {
      read: (segment) => {
        if (customer.getStore()?.gone !== false) foreign++
        return shelf.read(segment)
      },
      write: (segment, value, fence) => shelf.write(segment, value, fence),
    }
    const { holdfast, env, store } = w.process()
    store.back = 20
    const stock = stripedStock(holdfast, 'tickets', { segments: 3, storage, env })
    const buy = (): Promise<Taken | null> => {
      const self = { gone: false }
      return customer.run(self, async () => {
        const taken = await stock.take()
        self.gone = true
        return taken
      })
    }
    await w.env.until(buy())
    const from = shelf.reads
    // The second one asks while the first one's locks are being given up.
    expect(await w.env.until(buy().then(buy))).toBe(null)
    expect(shelf.reads).toBe(from + 6)
    expect(foreign).toBe(0)
  })

  it('does not say "sold out" when there was something all the time, only not where one looked', async () => {
    const w = world()
    const shelf = new Shelf(w.env, [0, 1])
    const { stock } = shop(w, shelf)
    // Before each look at the second segment the one ticket moves to the first: one is there at every moment.
    const read = shelf.read.bind(shelf)
    let moves = 0
    shelf.read = async (segment) => {
      if (segment === 1 && moves === 0 && shelf.values[1] === 1 && shelf.reads > 0) {
        moves++
        shelf.values.splice(0, 2, 1, 0)
      }
      return read(segment)
    }
    shelf.reads = 1
    const taken = await w.env.until(stock.take())
    expect(moves).toBe(1)
    expect(taken?.quantity).toBe(1)
    expect(shelf.total).toBe(0)
  })

  it('that is sold out is looked at once for all who ask meanwhile, and a ticket that comes back is sold', async () => {
    const w = world()
    const shelf = new Shelf(w.env, [0, 0, 0, 0])
    shelf.latency = () => 5
    const [one, other] = [shop(w, shelf), shop(w, shelf)]
    await w.env.until(one.stock.take())
    const before = shelf.reads
    const nothing = await w.env.until(Promise.all(Array.from({ length: 200 }, () => one.stock.take())))
    expect(nothing.every((each) => each === null)).toBe(true)
    await w.env.advance(10_000)
    expect(shelf.reads - before).toBeLessThanOrEqual(8)
    await w.env.until(other.stock.put())
    expect(await w.env.until(one.stock.take())).toMatchObject({ quantity: 1 })
  })

  it('takes back', async () => {
    const w = world()
    const shelf = new Shelf(w.env, [1, 1])
    const { stock } = shop(w, shelf)
    await w.env.until(stock.put(3))
    expect(await w.env.until(stock.total())).toBe(5)
    expect(await w.env.until(stock.take(2))).toMatchObject({ quantity: 2 })
    expect(await w.env.until(stock.take(3))).toMatchObject({ quantity: 3 })
    expect(await w.env.until(stock.take())).toBe(null)
  })

  it.each([undefined, {}, { segments: 2, storage: {} }])(
    'refuses options without a storage: %j',
    (options) => {
      const { holdfast } = world().process()
      expect(() => stripedStock(holdfast, 'seats', options as never)).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGUMENT', argument: 'storage' }),
      )
    },
  )

  // Of pg, mysql2, better-sqlite3, Prisma and Mongo; rows that a RETURNING gave; and what a statement that found none is to some.
  it.each([
    0,
    1,
    0n,
    null,
    { rowCount: 0 },
    [{ affectedRows: 0 }],
    { changes: 0 },
    { count: 1 },
    [],
    new Map(),
  ])(
    'refuses a storage that answers a write with %o: it may mean that nothing was changed',
    async (answer) => {
      const w = world()
      const storage = { read: () => 5, write: () => answer }
      const stock = stripedStock(w.process().holdfast, 'tickets', { segments: 2, storage, env: w.env })
      const wrong = { code: 'INVALID_ARGUMENT', argument: 'storage' }
      await expect(w.env.until(stock.fill(10))).rejects.toMatchObject(wrong)
      await expect(w.env.until(stock.take())).rejects.toMatchObject(wrong)
      await expect(w.env.until(stock.take(7))).rejects.toMatchObject(wrong)
    },
  )

  it.each([true, undefined, 'OK'])('takes %s for a write that was done', async (answer) => {
    const w = world()
    const storage = { read: () => 5, write: () => answer }
    const stock = stripedStock(w.process().holdfast, 'tickets', { segments: 2, storage, env: w.env })
    expect(await w.env.until(stock.take())).toMatchObject({ quantity: 1 })
  })

  it('says whose number is none when it was read: drivers give large ones as texts', async () => {
    const w = world()
    const storage = { read: () => '5' as never, write: () => true }
    const stock = stripedStock(w.process().holdfast, 'tickets', { segments: 2, storage, env: w.env })
    await expect(w.env.until(stock.take())).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      argument: 'storage',
      message: expect.stringMatching(/^storage\.read must .* got a string/) as string,
    })
  })

  it('refuses quantities that are none', async () => {
    const w = world()
    const { stock } = shop(w, new Shelf(w.env, [1]))
    await expect(stock.take(0)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', argument: 'quantity' })
    await expect(stock.put(1.5)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', argument: 'quantity' })
  })
})

describe('a striped stock under faults', () => {
  it('refuses the write of a seller that was stopped between reading and writing', async () => {
    const w = world()
    const shelf = new Shelf(w.env, [5])
    const [stopped, other] = [shop(w, shelf, 1000), shop(w, shelf, 1000)]
    // The write leaves in time and arrives after everybody else's.
    let late = true
    const write = shelf.write.bind(shelf)
    shelf.write = async (...args) => {
      if (late) {
        late = false
        await w.env.sleep(5000)
      }
      return write(...args)
    }
    const slow = stopped.stock.take()
    await w.env.advance(10)
    stopped.env.pause(4000)
    stopped.store.lose('renew', 'request', Infinity)
    const sold = await w.env.until(Promise.all([other.stock.take(), other.stock.take()]))
    const late1 = await w.env.until(slow)
    expect(shelf.refused).toBe(1)
    expect(sum([...sold, late1]) + shelf.total).toBe(5)
  })

  it('puts back what it has when the rest cannot be had', async () => {
    const w = world()
    const shelf = new Shelf(w.env, [1, 1, 1])
    const { stock } = shop(w, shelf)
    shelf.nextWrite = (segment) => {
      if (segment === 1) throw new Error('disk full')
    }
    await expect(w.env.until(stock.take(3))).rejects.toThrow('disk full')
    expect(shelf.values).toEqual([1, 1, 1])
  })

  it('tells what it could not put back', async () => {
    const w = world()
    const shelf = new Shelf(w.env, [1, 1, 1])
    const { stock } = shop(w, shelf)
    let broken = false
    shelf.nextWrite = (segment) => {
      broken ||= segment === 1
      if (broken) throw new Error('disk full')
    }
    const error = await w.env.until(stock.take(3).catch((reason: unknown) => reason))
    expect(error).toBeInstanceOf(LockLostError)
    expect(error).toMatchObject({
      outcome: { value: [{ segment: 0, quantity: 1 }] },
      cause: { message: 'disk full' },
    })
  })

  it('gives up waiting when told to, and takes nothing then', async () => {
    const w = world()
    const shelf = new Shelf(w.env, [5])
    const [busy, hasty] = [shop(w, shelf), shop(w, shelf)]
    shelf.latency = () => 1000
    const first = busy.stock.take()
    await w.env.advance(10)
    const controller = new AbortController()
    const second = hasty.stock.take(1, { signal: controller.signal }).catch((error: unknown) => error)
    await w.env.advance(10)
    controller.abort()
    expect(await w.env.until(second)).toBeInstanceOf(LockAbortedError)
    await w.env.until(first)
    expect(shelf.total).toBe(4)
  })

  it('refuses at once who holds a segment, also while others wait for that one to look at all', async () => {
    const w = world()
    const { holdfast, env } = w.process()
    const storage = new Shelf(w.env, [0, 0])
    const stock = stripedStock(holdfast, 'tickets', { segments: 2, storage, env })
    expect(await w.env.until(stock.take())).toBeNull()
    let other: Promise<Taken | null> | undefined
    const inside = holdfast.mutex('tickets#0').run(async () => {
      other = holdfast.outside(() => stock.take())
      await env.sleep(100)
      return stock.take().catch((error: unknown) => error)
    })
    expect(await w.env.until(inside)).toBeInstanceOf(LockReentryError)
    expect(await w.env.until(other ?? inside)).toBeNull()
  })

  it('neither makes nor loses anything, whatever stops when', async () => {
    const step = fc.record({
      shop: fc.nat(2),
      quantity: fc.integer({ min: 1, max: 3 }),
      what: fc.constantFrom('take' as const, 'take' as const, 'put' as const),
      pause: fc.option(fc.integer({ min: 1, max: 3000 }), { nil: null, freq: 4 }),
      after: fc.nat(30),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        fc.integer({ min: 1, max: 5 }),
        fc.nat(),
        async (steps, n, seed) => {
          const w = world()
          const shelf = new Shelf(w.env, Array<number>(n).fill(4))
          for (let skip = seed % 7; skip > 0; skip--) w.env.random()
          shelf.latency = () => w.env.random() * 20
          const shops = Array.from({ length: 3 }, () => shop(w, shelf, 500))
          let balance = shelf.total
          const all: Promise<void>[] = []
          for (const { shop: which, quantity, what, pause, after } of steps) {
            const { stock, env } = shops[which] as Shop
            const done =
              what === 'take'
                ? stock.take(quantity).then((taken) => void (balance -= taken?.quantity ?? 0))
                : stock.put(quantity).then(() => void (balance += quantity))
            // A lease lost before the write: nothing was changed.
            all.push(
              done.catch((error: unknown) => {
                if (!(error instanceof LockLostError)) throw error
              }),
            )
            await w.env.advance(after)
            if (pause !== null) env.pause(pause)
          }
          await w.env.until(Promise.all(all))
          expect(shelf.total).toBe(balance)
          expect(Math.min(...shelf.values)).toBeGreaterThanOrEqual(0)
        },
      ),
      { numRuns: 60 },
    )
  })
})
