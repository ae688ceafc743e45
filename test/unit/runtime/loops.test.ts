import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import { Holdfast } from '../../../src/index.ts'
import type { Lease } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'

/** Far more than may follow each other, and few enough to fail in a moment. */
const MOST = 20_000
/** Of rounds that take time. */
const FEW = 30

let holdfast: Holdfast
beforeEach(() => (holdfast = new Holdfast(memoryStore())))
afterEach(() => holdfast.close())

type Step = (holdfast: Holdfast) => Promise<unknown>

const nothing = (): void => {}

const loops: Record<string, Step> = {
  'acquire and release': async (locks) => {
    const lease = await locks.mutex('hot').acquire()
    await lease.release()
  },
  'acquire, and release unawaited': async (locks) => {
    const lease = await locks.mutex('hot').acquire()
    lease.release().catch(() => {})
  },
  'tryAcquire and release': async (locks) => {
    const lease = await locks.mutex('hot').tryAcquire()
    await lease?.release()
  },
  run: (locks) => locks.mutex('hot').run(nothing),
  inspect: (locks) => locks.inspect('hot'),
  list: (locks) => locks.list(),
}

const read: Step = (locks) => locks.readWriteLock('both').read.run(nothing)
const write: Step = (locks) => locks.readWriteLock('both').write.run(nothing)
const again: Step = (locks) => locks.mutex('again', { reentrant: true }).run(nothing)

/** The work of a section that computes. */
function compute(): void {
  const until = performance.now() + 10
  while (performance.now() < until);
}

const slow: Record<string, Step> = {
  'a lock that is free': (locks) => locks.mutex('hot').run(compute),
  'a lock inside of its own section': (locks) => locks.mutex('again', { reentrant: true }).run(compute),
  'locks that are waited for': (locks) => Promise.all([1, 2].map(() => locks.mutex('hot').run(compute))),
  'a look': async (locks) => {
    compute()
    await locks.inspect('hot')
  },
}

/** One after the other, until a timer fires. */
async function repeat(steps: readonly Step[], most = MOST): Promise<boolean> {
  let fired = false
  setTimeout(() => (fired = true), 0)
  const loop = async (step: Step): Promise<void> => {
    for (let i = 0; i < most / steps.length && !fired; i++) await step(holdfast)
  }
  await Promise.all(steps.map(loop))
  return fired
}

describe('a loop around a lock whose store answers at once lets timers, and with them renewals, have their turn', () => {
  it.each(Object.entries(loops))('%s', async (_, step) => {
    expect(await repeat([step])).toBe(true)
  })

  it('beside others that always have to wait for each other', async () => {
    expect(await repeat([read, write, write])).toBe(true)
  })

  it.each([
    ['a reader', read],
    ['a re-entrant lock', again],
  ])('inside of its own section: %s', async (_, step) => {
    const outer = step === read ? holdfast.readWriteLock('both').read : holdfast.mutex('again')
    expect(await outer.run(() => repeat([step]))).toBe(true)
  })

  // A thousand of these would take longer than most leases last.
  it.each(Object.entries(slow))('soon, if each round takes its time: %s', async (_, step) => {
    const lock = holdfast.mutex('again')
    expect(await lock.run(() => repeat([step], FEW))).toBe(true)
  })

  it('when nothing is answered any more, for it was closed', async () => {
    await holdfast.close()
    expect(await repeat([(locks) => locks.inspect('hot').catch(nothing)])).toBe(true)
    expect(await repeat([(locks) => locks.list().catch(nothing)])).toBe(true)
  })
})

describe('many that get their locks in one moment, and compute', () => {
  const ALL = Array.from({ length: 60 }, (_, i) => i)
  const ways: Record<string, (locks: Holdfast, i: number, body: (lease: Lease) => void) => Promise<unknown>> =
    {
      'a lock each': (locks, i, body) => locks.mutex(`each ${i}`).run(body),
      readers: (locks, _, body) => locks.readWriteLock('both').read.run(body),
      permits: (locks, _, body) => locks.semaphore('many', ALL.length).run(body),
      'a set each': (locks, i, body) => locks.all([`a ${i}`, `b ${i}`]).run(body),
    }

  it.each(Object.entries(ways))('lose none of them: %s', async (_, run) => {
    const locks = new Holdfast(memoryStore(), { ttl: 400 })
    const without: number[] = []
    const results = await Promise.allSettled(
      ALL.map((i) =>
        run(locks, i, (lease) => {
          if (!lease.held) without.push(i)
          compute()
        }),
      ),
    )
    await locks.close()
    expect(without).toEqual([])
    expect(results.filter(({ status }) => status === 'rejected')).toEqual([])
  })
})
