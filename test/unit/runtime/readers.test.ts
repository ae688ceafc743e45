import { describe, expect, it } from 'vitest'

import type { Store } from '../../../src/core/contract.ts'
import { Holdfast, LockTimeoutError } from '../../../src/index.ts'
import type { Lease } from '../../../src/index.ts'
import { isClean, world } from './far-store.ts'
import type { Process, World } from './far-store.ts'

const read = ({ holdfast }: Process, options = {}): Promise<Lease> =>
  holdfast.readWriteLock('c').read.acquire(options)
const tryRead = ({ holdfast }: Process): Promise<Lease | null> =>
  holdfast.readWriteLock('c').read.tryAcquire()
const write = ({ holdfast }: Process, options = {}): Promise<Lease> =>
  holdfast.readWriteLock('c').write.acquire(options)

/** `near`: the store answers at once, as one in memory does. */
function pair(w: World, distance: number): [Process, Process] {
  const both: [Process, Process] = [w.process(), w.process()]
  for (const { store } of both) store.there = store.back = distance
  return both
}

describe.each([0, 1])('readers at a store %i ms away', (distance) => {
  it.each(['another process', 'the same process'])(
    'come in beside a long reader once a writer of %s has given up',
    async (where) => {
      const w = world()
      const [a, b] = pair(w, distance)
      const long = await w.env.until(read(a))
      const writer = write(where === 'another process' ? b : a, { wait: 50 })
      await expect(w.env.until(writer)).rejects.toBeInstanceOf(LockTimeoutError)
      await w.env.advance(10)
      const before = w.env.mono()
      const late = await w.env.until(read(a, { wait: 5000 }))
      expect(w.env.mono() - before).toBeLessThanOrEqual(6 * distance + 1)
      expect(await w.env.until(tryRead(a))).not.toBeNull()
      expect([long.held, late.held]).toEqual([true, true])
    },
  )

  it('come in when a writer gives up that stood before them', async () => {
    const w = world()
    const [a, b] = pair(w, distance)
    await w.env.until(read(a))
    await w.env.until(read(a))
    const writer = write(b, { wait: 500 })
    await w.env.advance(20)
    const late = read(a, { wait: 5000 })
    await w.env.advance(20)
    const before = w.env.mono()
    await expect(w.env.until(writer)).rejects.toBeInstanceOf(LockTimeoutError)
    await w.env.until(late)
    expect(w.env.mono() - before).toBeLessThan(500)
  })

  it('do not take over from one that leaves before the store has said whether a writer waits', async () => {
    const w = world()
    const [a, b] = pair(w, distance)
    // Nobody had to wait in this process, so nobody listens there.
    const first = await w.env.until(read(a))
    const writing = write(b)
    await w.env.advance(40)
    const order: string[] = []
    const reading = read(a).then((lease) => {
      order.push('reader')
      return lease.release()
    })
    const released = first.release()
    const written = writing.then((lease) => {
      order.push('writer')
      return lease.release()
    })
    await w.env.until(Promise.all([written, reading, released]))
    expect(order).toEqual(['writer', 'reader'])
  })

  it('never refuse each other, however many try', async () => {
    const w = world()
    const [a] = pair(w, distance)
    const leases: Lease[] = []
    for (let count = 0; count < 100; count++) {
      const lease = await w.env.until(tryRead(a))
      expect(lease, `reader ${count + 1}`).not.toBeNull()
      if (lease !== null) leases.push(lease)
    }
    expect(new Set(leases.map(({ token }) => token)).size).toBe(100)
    await w.env.until(Promise.all(leases.map((lease) => lease.release())))
    expect(await isClean(w, 'c')).toBe(true)
  })

  it('are let in by tries and by waits at the same moment', async () => {
    const w = world()
    const [a] = pair(w, distance)
    const asked = Array.from({ length: 300 }, (_, n) =>
      n % 3 === 0 ? tryRead(a) : read(a, n % 3 === 1 ? { wait: 0 } : { wait: 1000 }),
    )
    const leases = await w.env.until(Promise.all(asked))
    expect(leases.filter((lease) => lease === null)).toEqual([])
    expect(w.env.mono()).toBeLessThanOrEqual(10 * distance + 1)
    await w.env.until(Promise.all(leases.map(async (lease) => lease?.release())))
    await w.env.advance(10)
    expect(await isClean(w, 'c')).toBe(true)
  })

  it('are a few claims at the store, whatever their number', async () => {
    const w = world()
    const [a] = pair(w, distance)
    for (let count = 0; count < 500; count++) await w.env.until(read(a))
    const info = await w.server.inspect('c', 1000)
    expect('kind' in info ? info : info.holders.length).toBeLessThanOrEqual(3)
    expect(a.store.count('claim') + a.store.count('renew')).toBeLessThan(20)
  })

  it('are a few claims there also if all of them only try', async () => {
    const w = world()
    const [a] = pair(w, distance)
    for (let count = 0; count < 500; count++) await w.env.until(tryRead(a))
    expect(a.store.count('claim') + a.store.count('renew')).toBeLessThan(100)
  })

  it('use the tokens of all their claims before they ask for more', async () => {
    const w = world()
    const [a] = pair(w, distance)
    // From the second reader on it listens, and knows of every queue.
    for (const lease of [await w.env.until(read(a)), await w.env.until(read(a))])
      await w.env.until(lease.release())
    await w.env.until(Promise.all([tryRead(a), tryRead(a)]))
    const info = await w.server.inspect('c', 1000)
    const tokens = 16 * ('kind' in info ? 0 : info.holders.length)
    const before = a.store.count()
    for (let used = 2; used < tokens; used++) await w.env.until(tryRead(a))
    expect(a.store.count()).toBe(before)
    await w.env.until(read(a))
    expect(a.store.count()).toBeGreaterThan(before)
  })
})

/** Readers that overlap without a pause, one each `every` ms for `lasting` ms. Returns when each began. */
function crowd(w: World, reader: Process, every: number, lasting: number, count: number): number[] {
  const began: number[] = []
  const section = async (): Promise<void> => {
    const lease = (await tryRead(reader)) ?? (await read(reader, { wait: Infinity }))
    began.push(w.env.mono())
    await w.env.sleep(lasting)
    await lease.release()
  }
  const start = async (): Promise<void> => {
    const all: Promise<void>[] = []
    for (let n = 0; n < count; n++) {
      all.push(section())
      await w.env.sleep(every)
    }
    await Promise.all(all)
  }
  start().catch(() => began.push(NaN))
  return began
}

describe.each(['push', 'poll'] as const)('a writer at a store with %s', (wakeups) => {
  it.each([
    ['turns', 0],
    ['turns', 1],
    ['strict', 1],
    ['turns', 'no'],
  ] as const)(
    'is passed over for one turn at most (%s, %s ms away) by readers of a process that never had to wait',
    async (fair, distance) => {
      const w = world({ wakeups })
      const far = distance === 'no' ? 0 : distance
      const make = (): Process => {
        const { store, env, holdfast } = w.process({ fair })
        store.there = store.back = store.events = far
        if (distance !== 'no') return { store, env, holdfast }
        const near = Object.create(w.server, { capabilities: { value: store.capabilities } }) as Store
        return { store, env, holdfast: new Holdfast(near, { env, fair, owner: 'near' }) }
      }
      const [reader, other, writer] = [make(), make(), make()]
      const began = [crowd(w, reader, 100, 1000, 60), crowd(w, other, 130, 1000, 40)]
      await w.env.advance(350)
      const asked = w.env.mono()
      const lease = await w.env.until(write(writer, { wait: 20_000 }))
      // The last one that came before it has a second to go.
      expect(w.env.mono() - asked).toBeLessThan(1000 + 50 + (wakeups === 'poll' ? 1000 : 0))
      const during = began.flat().filter((at) => at > asked + 4 + 4 * far && at < w.env.mono())
      expect(during).toEqual([])
      const resumed = w.env.mono()
      await w.env.until(lease.release())
      await w.env.advance(2000)
      expect(began.flat().filter((at) => at > resumed).length).toBeGreaterThan(10)
      await w.env.advance(20_000)
      expect(await isClean(w, 'c')).toBe(true)
    },
  )
})

describe('a writer that readers keep waiting', () => {
  it('is seen also if the message about it was lost with the connection', async () => {
    const w = world()
    const [a, b] = pair(w, 1)
    const began = crowd(w, a, 20, 500, 200)
    await w.env.advance(1010)
    a.store.events = Infinity
    const asked = w.env.mono()
    const writer = write(b, { wait: 20_000 })
    await w.env.advance(100)
    a.store.events = 0
    a.store.gap()
    await w.env.until(writer)
    expect(began.filter((at) => at > asked + 110 && at < w.env.mono())).toEqual([])
  })
})
