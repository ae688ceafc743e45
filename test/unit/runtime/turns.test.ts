import { describe, expect, it } from 'vitest'

import type { Holdfast, Lease } from '../../../src/index.ts'
import { world } from './far-store.ts'
import type { World } from './far-store.ts'

/** Runs sections in `tasks` loops until `total` are done; returns the tokens in order, per section. */
async function sections(holdfast: Holdfast, name: string, tasks: number, total: number): Promise<bigint[]> {
  const tokens: bigint[] = []
  let inside = 0
  let left = total
  const loop = async (): Promise<void> => {
    while (left-- > 0) {
      const lease = await holdfast.mutex(name).acquire({ wait: Infinity })
      expect(++inside).toBe(1)
      tokens.push(lease.token)
      await Promise.resolve()
      inside--
      await lease.release()
    }
  }
  await Promise.all(Array.from({ length: tasks }, loop))
  return tokens
}

const isAscending = (tokens: readonly bigint[]): boolean =>
  tokens.every((token, index) => index === 0 || token > (tokens[index - 1] ?? 0n))

describe('tasks of one process', () => {
  it('hand the lock on without asking the store, each with a token of its own', async () => {
    const { env, process } = world()
    const { holdfast, store } = process()
    const tokens = await env.until(sections(holdfast, 'x', 100, 5000))
    expect(tokens).toHaveLength(5000)
    expect(isAscending(tokens)).toBe(true)
    expect(store.count() / 5000).toBeLessThan(0.02)
  })

  it('hand it on in strict fairness too while nobody else waits', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ fair: 'strict' })
    const tokens = await env.until(sections(holdfast, 'x', 100, 5000))
    expect(isAscending(tokens)).toBe(true)
    expect(store.count() / 5000).toBeLessThan(0.02)
  })

  it('are served first come, first served', async () => {
    const { env, process } = world()
    const { holdfast } = process()
    const order: number[] = []
    const one = async (n: number): Promise<void> => {
      await using _ = await holdfast.mutex('x').acquire()
      order.push(n)
    }
    await env.until(Promise.all(Array.from({ length: 50 }, (_, n) => one(n))))
    expect(order).toEqual(Array.from({ length: 50 }, (_, n) => n))
  })

  it('let the event loop look for input while they hand the lock on', async () => {
    const { env, process } = world()
    const { holdfast } = process()
    let deferred = 0
    const defer = env.defer.bind(env)
    env.defer = (callback) => {
      deferred++
      defer(callback)
    }
    await env.until(sections(holdfast, 'x', 10, 2560))
    expect(deferred).toBeGreaterThanOrEqual(9)
  })

  it('do not get a lease that is about to end: the claim is given up for a new one first', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 3000 })
    const mutex = holdfast.mutex('x')
    const first = await env.until(mutex.acquire())
    const [second, third] = [mutex.acquire(), mutex.acquire()]
    await env.until(first.release())
    const lease = await env.until(second)
    store.lose('renew', 'request', Infinity)
    await env.advance(2500)
    expect(lease.held).toBe(true)
    await env.until(lease.release())
    expect((await env.until(third)).remaining()).toBeGreaterThan(2000)
  })

  it('do not wait long for tokens that the store does not send: the claim is given up for a new one', async () => {
    const { env, process } = world()
    const { holdfast, store } = process()
    const mutex = holdfast.mutex('x')
    const first = await env.until(mutex.acquire())
    const second = mutex.acquire()
    await env.settle()
    store.lose('renew', 'reply')
    const before = env.mono()
    await env.until(first.release())
    await env.until(second)
    // A sixth of the patience is how long a renewal may take.
    expect(env.mono() - before).toBeLessThan(5000 / 6 + 10)
  })

  it('that all gave up leave the claim to nobody', async () => {
    const { env, process, server } = world()
    const { holdfast } = process()
    const mutex = holdfast.mutex('x')
    const first = await env.until(mutex.acquire())
    const controller = new AbortController()
    const waits = Array.from({ length: 10 }, () => mutex.acquire({ signal: controller.signal }))
    await env.settle()
    controller.abort()
    const outcomes = await Promise.allSettled(waits)
    expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true)
    await env.until(first.release())
    const info = await server.inspect('x', 1000)
    expect('kind' in info ? info : info.holders).toEqual([])
  })
})

describe('turns between processes', () => {
  /** Two processes with ten tasks each, a section takes `work` ms; returns who ran each section. */
  async function contest(
    w: World,
    fair: 'turns' | 'strict',
    total: number,
    work: number,
    turn: { count?: number; ms?: number } = {},
  ): Promise<string> {
    let log = ''
    let inside = 0
    const tokens: bigint[] = []
    const run = async (label: string, holdfast: Holdfast): Promise<void> => {
      while (log.length < total) {
        const lease = await holdfast.mutex('x').acquire({ wait: Infinity })
        expect(++inside).toBe(1)
        tokens.push(lease.token)
        log += label
        if (work > 0) await w.env.sleep(work)
        inside--
        await lease.release()
      }
    }
    const [a, b] = [w.process({ fair, turn }), w.process({ fair, turn })]
    a.store.there = a.store.back = b.store.there = b.store.back = 1
    const tasks = Array.from({ length: 10 }, () => [run('a', a.holdfast), run('b', b.holdfast)]).flat()
    await w.env.until(Promise.all(tasks))
    expect(isAscending(tokens)).toBe(true)
    return log.slice(0, total)
  }

  it('end after their budget of time, so that nobody waits long', async () => {
    const log = await contest(world(), 'turns', 400, 2)
    const longest = Math.max(...(log.slice(50).match(/a+|b+/g) ?? []).map(({ length }) => length))
    expect(longest).toBeLessThanOrEqual(4)
    const share = (log.match(/a/g) ?? []).length / log.length
    expect(share).toBeGreaterThan(0.4)
    expect(share).toBeLessThan(0.6)
  })

  it('end after every section in strict fairness once the other process is known to wait', async () => {
    const log = await contest(world(), 'strict', 200, 2)
    expect(log.slice(20)).toMatch(/^(ab)*a?$|^(ba)*b?$/)
  })

  it('end after their budget of sections too', async () => {
    const log = await contest(world(), 'turns', 200, 2, { count: 3, ms: 1000 })
    const longest = Math.max(...(log.slice(50).match(/a+|b+/g) ?? []).map(({ length }) => length))
    expect(longest).toBe(3)
  })

  it('cost one request each: the release and the next claim go together', async () => {
    const w = world()
    const [a, b] = [w.process({ fair: 'strict' }), w.process({ fair: 'strict' })]
    let done = 0
    const run = async (holdfast: Holdfast): Promise<void> => {
      while (done < 200) {
        const lease = await holdfast.mutex('x').acquire({ wait: Infinity })
        done++
        await w.env.sleep(1)
        await lease.release()
      }
    }
    const loops = [a, a, b, b].map(({ holdfast }) => run(holdfast))
    await w.env.until(Promise.all(loops))
    const requests = a.store.count() + b.store.count() - a.store.count('renew') - b.store.count('renew')
    expect(requests / done).toBeLessThan(1.1)
  })
})

describe.each([0, 1])('a writer in line behind another of its process, at a store %i ms away', (distance) => {
  /** The writer before it works for so long. Returns in which order the others came in. */
  async function order(hold: number): Promise<string[]> {
    const w = world()
    const [a, b] = [w.process(), w.process()]
    a.store.there = a.store.back = b.store.there = b.store.back = distance
    const lockOf = ({ holdfast }: typeof a): ReturnType<Holdfast['readWriteLock']> =>
      holdfast.readWriteLock('x')
    const log: string[] = []
    const work = async (label: string, lease: Promise<Lease>): Promise<void> => {
      const held = await lease
      log.push(label)
      await w.env.sleep(50)
      await held.release()
    }
    const first = await w.env.until(lockOf(a).write.acquire())
    const second = work('the writer', lockOf(a).write.acquire())
    const early = work('the reader who came while the first one worked', lockOf(b).read.acquire())
    await w.env.advance(hold)
    await w.env.until(first.release())
    await w.env.advance(10)
    const late = work('a reader who came after that', lockOf(b).read.acquire())
    await w.env.until(Promise.all([second, early, late]))
    return log
  }

  it('goes on with the turn of its process while it lasts', async () => {
    expect((await order(1))[0]).toBe('the writer')
  })

  it('has its place at the store when the turn is over: before every reader who comes later', async () => {
    expect(await order(100)).toEqual([
      'the reader who came while the first one worked',
      'the writer',
      'a reader who came after that',
    ])
  })
})

describe('readers and permits of one process', () => {
  it('share one claim, and a writer waits for all of them', async () => {
    const { env, process, server } = world()
    const { holdfast } = process()
    const { read, write } = holdfast.readWriteLock('x')
    const first = await env.until(read.acquire())
    const readers = [
      first,
      ...(await env.until(Promise.all(Array.from({ length: 10 }, () => read.acquire())))),
    ]
    const info = await server.inspect('x', 1000)
    expect('kind' in info ? [] : info.holders).toHaveLength(1)
    expect(new Set(readers.map(({ token }) => token)).size).toBe(11)
    let wrote = false
    const writing = write.acquire().then((lease) => {
      wrote = true
      return lease
    })
    for (const reader of readers) {
      await env.advance(1)
      expect(wrote).toBe(false)
      await env.until(reader.release())
    }
    const writer = await env.until(writing)
    expect(readers.every(({ token }) => token < writer.token)).toBe(true)
  })

  it('do not starve a writer of another process', async () => {
    const w = world()
    const [a, b] = [w.process(), w.process()]
    let stop = false
    const reading = async (): Promise<void> => {
      while (!stop) {
        const lease = await a.holdfast.readWriteLock('x').read.acquire({ wait: Infinity })
        await w.env.sleep(3)
        await lease.release()
      }
    }
    const readers = [reading(), reading(), reading()]
    await w.env.advance(50)
    const before = w.env.mono()
    const writer = await w.env.until(b.holdfast.readWriteLock('x').write.acquire())
    expect(w.env.mono() - before).toBeLessThan(50)
    stop = true
    await w.env.until(writer.release())
    await w.env.until(Promise.all(readers))
  })

  it('never take more permits than there are', async () => {
    const w = world()
    const processes = [w.process(), w.process(), w.process()]
    let inside = 0
    let most = 0
    const work = async (holdfast: Holdfast, permits: number): Promise<void> => {
      for (let n = 0; n < 20; n++) {
        const lease: Lease = await holdfast.semaphore('x', 5).acquire({ permits, wait: Infinity })
        inside += permits
        most = Math.max(most, inside)
        await w.env.sleep(1 + (n % 3))
        inside -= permits
        await lease.release()
      }
    }
    const tasks = processes.flatMap(({ holdfast }) => [1, 2, 3].map((permits) => work(holdfast, permits)))
    await w.env.until(Promise.all(tasks))
    expect(most).toBe(5)
  })
})
