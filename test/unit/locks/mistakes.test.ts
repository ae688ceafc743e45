import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { describe, expect, it } from 'vitest'

import { Holdfast, InvalidArgumentError, open } from '../../../src/index.ts'
import type { Lease } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { isClean, world } from '../runtime/far-store.ts'

/** What plain JavaScript can pass. */
type Any = never

const problem = async (attempt: () => unknown): Promise<unknown> => {
  try {
    await attempt()
  } catch (error) {
    return error
  }
  return undefined
}

const locks = (): Holdfast => new Holdfast(memoryStore())
const lease = (): Promise<Lease> => locks().mutex('x').acquire()

describe('a mistake in a call is refused, with what to do', () => {
  const fn = (): number => 1
  it.each<[string, () => unknown, RegExp]>([
    [
      'a drain for the day of the signal',
      () => locks().closeOn(['SIGUSR2'], { drain: Number.NaN }),
      /^drain must be/,
    ],
    ['a timeout likewise', () => locks().closeOn(['SIGUSR2'], { timeout: -1 }), /^timeout must be/],
    ['a release likewise', () => locks().closeOn(['SIGUSR2'], { release: 'no' as Any }), /^release must be/],
    [
      'what is to be told then',
      () => locks().closeOn(['SIGUSR2'], { onClosed: 'log' as Any }),
      /^onClosed must be a function/,
    ],
    ['a clock that is none', () => memoryStore({ now: 5 as Any }), /^now must be a function/],
    ['no store', () => new Holdfast(undefined as Any), /^store must be a store.*open\(/],
    [
      'a URL as store',
      () => new Holdfast('redis://:pw@h' as Any),
      /^store must be a store.*await open\(url\)/,
    ],
    [
      'ioredis',
      () => new Holdfast({ defineCommand: fn, call: fn } as Any),
      /redisStore\(client\).*holdfast\/redis/,
    ],
    ['node-redis', () => new Holdfast({ sendCommand: fn, isOpen: true } as Any), /redisStore\(client\)/],
    [
      'mysql2',
      () => new Holdfast({ getConnection: fn, query: fn, execute: fn } as Any),
      /mysqlStore\(client\)/,
    ],
    ['pg', () => new Holdfast({ connect: fn, query: fn, totalCount: 0 } as Any), /postgresStore\(client\)/],
    ['SQLite', () => new Holdfast({ prepare: fn, exec: fn } as Any), /sqliteStore\(client\)/],
    ['a promise', () => new Holdfast(Promise.resolve(memoryStore()) as Any), /await/],
    ['a Holdfast', () => new Holdfast(locks() as Any), /^store must be a store/],
    ['half a store', () => new Holdfast({ ...half(), list: 1 } as Any), /no method list/],
    ['no capabilities', () => new Holdfast({ ...half(), capabilities: {} } as Any), /capabilities/],
    [
      'a misspelt capability',
      () =>
        new Holdfast({ ...half(), capabilities: { ...memoryStore().capabilities, wakeups: 'Push' } } as Any),
      /capabilities say wakeups: "Push"/,
    ],
    ['null as options', () => new Holdfast(memoryStore(), null as Any), /^options must be an object/],
    ['a misspelt option', () => new Holdfast(memoryStore(), { patince: 1 } as Any), /patince.*"patience"/],
    ['a number as owner', () => new Holdfast(memoryStore(), { owner: 17 as Any }), /^owner must be a string/],
    ['null as clock', () => new Holdfast(memoryStore(), { clock: null as Any }), /^options must be/],
    ['a misspelt clock', () => new Holdfast(memoryStore(), { clock: { wal: false } as Any }), /wal.*"wall"/],
    [
      'a text as clock.wall',
      () => new Holdfast(memoryStore(), { clock: { wall: 'no' as Any } }),
      /^clock.wall/,
    ],
    [
      'closeStore',
      () => new Holdfast(memoryStore(), { closeStore: 'no' as Any }),
      /^closeStore must be true/,
    ],
    ['leakWarnings', () => new Holdfast(memoryStore(), { leakWarnings: 0 as Any }), /^leakWarnings must be/],
    ['an empty env', () => new Holdfast(memoryStore(), { env: {} as Any }), /^env must have .*mono, boot/],
    ['null for release', () => locks().close({ release: null as Any }), /^release must be true or false/],
    [
      'a text for release',
      () => locks().close({ release: 'false' as Any }),
      /^release must be true or false/,
    ],
    ['a number as prefix', () => locks().list({ prefix: 5 as Any }), /^prefix must be a string/],
    ['an object as cursor', () => locks().list({ cursor: {} as Any }), /^cursor must be a string/],
    ['null for open', () => open('memory:', null as Any), /^options must be an object/],
    ['a scheme of Object', () => open('constructor:x'), /scheme constructor:, which no store answers to/],
    ['null for a lock', () => locks().mutex('x', null as Any), /^options must be an object/],
    [
      'a number for a lock',
      () => locks().mutex('x', 5000 as Any),
      /^options must be an object.*\{ ttl: 5000 \}/,
    ],
    ['a misspelt lock option', () => locks().mutex('x', { TTL: 1 } as Any), /"TTL".*"ttl"/],
    ['reentrant as a string', () => locks().mutex('x', { reentrant: 'yes' } as Any), /^reentrant must be/],
    ['options of a semaphore', () => locks().semaphore('x', 2, { reentrant: true } as Any), /reentrant/],
    ['permits for a lock', () => locks().semaphore('x', 2, { permits: 2 } as Any), /permits.*acquire/],
    ['a read-write lock', () => locks().readWriteLock('x', 5 as Any), /^options must be an object/],
    ['striped', () => locks().striped('x', 2, 5 as Any), /^options must be an object/],
    ['all', () => locks().all(['x'], { wiat: 5 } as Any), /"wait"/],
    [
      'acquire(5000)',
      () =>
        locks()
          .mutex('x')
          .acquire(5000 as Any),
      /^options must be an object.*\{ wait: 5000 \}/,
    ],
    [
      'acquire(null)',
      () =>
        locks()
          .mutex('x')
          .acquire(null as Any),
      /^options must be an object/,
    ],
    [
      'acquire with a typo',
      () =>
        locks()
          .mutex('x')
          .acquire({ timeout: 5 } as Any),
      /timeout.*"wait"/,
    ],
    [
      'acquire with another’s',
      () =>
        locks()
          .mutex('x')
          .acquire({ reentrant: true } as Any),
      /reentrant.*lock/,
    ],
    [
      'acquire with a signal',
      () =>
        locks()
          .mutex('x')
          .acquire(AbortSignal.abort() as Any),
      /\{ signal \}/,
    ],
    [
      'tryAcquire(5000)',
      () =>
        locks()
          .mutex('x')
          .tryAcquire(5000 as Any),
      /^options must be an object/,
    ],
    [
      'tryAcquire({ wait })',
      () =>
        locks()
          .mutex('x')
          .tryAcquire({ wait: 5 } as Any),
      /acquire\(\{ wait \}\)/,
    ],
    [
      'a set, acquire(5)',
      () =>
        locks()
          .all(['x'])
          .acquire(5 as Any),
      /^options must be an object/,
    ],
    [
      'a set, a typo',
      () =>
        locks()
          .all(['x'])
          .tryAcquire({ wait: 5 } as Any),
      /acquire\(\{ wait \}\)/,
    ],
    [
      'run()',
      () =>
        locks()
          .mutex('x')
          .run(undefined as Any),
      /^body must be a function/,
    ],
    [
      'run(options, fn)',
      () =>
        locks()
          .mutex('x')
          .run({ wait: 5 } as Any, fn as Any),
      /run\(body, options\)/,
    ],
    [
      'run of a promise',
      () =>
        locks()
          .mutex('x')
          .run(Promise.resolve() as Any),
      /\(\) => /,
    ],
    [
      'run of a set',
      () =>
        locks()
          .all(['x'])
          .run(undefined as Any),
      /^body must be a function/,
    ],
    ['outside()', () => locks().outside(undefined as Any), /^body must be a function/],
    ['assertHeld(500)', async () => (await lease()).assertHeld(500 as Any), /\{ atLeast: 500 \}/],
    ['assertHeld(null)', async () => (await lease()).assertHeld(null as Any), /^options must be an object/],
    ['assertHeld typo', async () => (await lease()).assertHeld({ atleast: 5 } as Any), /"atLeast"/],
    ['list("x")', () => locks().list('x' as Any), /\{ prefix: "x" \}/],
    ['list typo', () => locks().list({ prefx: 'x' } as Any), /"prefix"/],
    [
      'a key that is an object',
      () =>
        locks()
          .striped('x', 4)
          .for({} as Any),
      /^key must be a string or a number/,
    ],
    ['closeOn, drain', () => locks().closeOn(['SIGUSR2'], { drain: Infinity }), /^drain must be a whole/],
    ['closeOn, timeout', () => locks().closeOn(['SIGUSR2'], { timeout: '5s' as Any }), /^timeout must be/],
    ['closeOn, release', () => locks().closeOn(['SIGUSR2'], { release: 1 as Any }), /^release must be true/],
    [
      'closeOn, onClosed',
      () => locks().closeOn(['SIGUSR2'], { onClosed: 1 as Any }),
      /^onClosed must be a f/,
    ],
    [
      'closeOn, SIGKILL',
      () => locks().closeOn(['SIGUSR2', 'SIGKILL']),
      /^signals .*nobody can listen to SIGKILL/,
    ],
    ['options that are promised', () => locks().mutex('x', Promise.resolve({}) as Any), /^options .*await/],
    ['options in a Map', () => new Holdfast(memoryStore(), new Map() as Any), /^options must be an object/],
    [
      'options in a list',
      () =>
        locks()
          .mutex('x')
          .acquire([] as Any),
      /^options must be an object/,
    ],
    ['a key that is NaN', () => locks().striped('x', 4).for(Number.NaN), /^key must be/],
    [
      'no key',
      () =>
        locks()
          .striped('x', 4)
          .for(undefined as Any),
      /^key must be/,
    ],
  ])('%s', async (_, attempt, message) => {
    const error = await problem(attempt)
    expect(error).toBeInstanceOf(InvalidArgumentError)
    expect((error as Error).message).toMatch(message)
    expect((error as Error).message).not.toContain('pw')
  })

  it('and closeOn, refused, listens to no signal', async () => {
    const before = process.listenerCount('SIGUSR2')
    await problem(() => locks().closeOn(['SIGUSR2', 'SIGSTOP']))
    await problem(() => locks().closeOn(['SIGUSR2'], { drain: -1 }))
    expect(process.listenerCount('SIGUSR2')).toBe(before)
  })

  it('before the store is asked', async () => {
    const { holdfast, store } = world().process()
    const attempts = [
      () => holdfast.mutex('x').run(undefined as Any),
      () => holdfast.mutex('x').acquire({ wiat: 1 } as Any),
      () => holdfast.all(['x']).run(undefined as Any),
    ]
    for (const attempt of attempts) expect(await problem(attempt)).toBeInstanceOf(InvalidArgumentError)
    expect(store.count()).toBe(0)
  })

  it('and an option that is undefined is as good as none', async () => {
    const holdfast = new Holdfast(memoryStore(), {
      ttl: undefined,
      owner: undefined,
      turn: { ms: undefined },
    })
    const mutex = holdfast.mutex('x', { wait: undefined, reentrant: undefined })
    const held = await mutex.acquire({ signal: undefined, maxHold: undefined })
    expect(held.held).toBe(true)
    held.assertHeld({ atLeast: undefined })
    await held.release()
  })
})

/** A store, its methods as its own properties. */
function half(): object {
  const store = memoryStore()
  const fn = (): number => 1
  const { kind, capabilities } = store
  return {
    kind,
    capabilities,
    claim: fn,
    renew: fn,
    release: fn,
    withdraw: fn,
    watch: fn,
    inspect: fn,
    list: fn,
    close: fn,
  }
}

describe('numbers as keys of a striped lock', () => {
  it('spread like their digits', () => {
    const striped = locks().striped('seats', 16)
    const names = new Set(Array.from({ length: 500 }, (_, n) => striped.for(n).name))
    expect(names.size).toBe(16)
    expect(striped.for(17).name).toBe(striped.for('17').name)
    expect(striped.for(17n).name).toBe(striped.for('17').name)
  })
})

describe('a lease that nobody has any more', () => {
  setFlagsFromString('--expose_gc')
  const gc = runInNewContext('gc') as () => void
  const collected = async (until: () => boolean): Promise<void> => {
    for (let round = 0; round < 20 && !until(); round++) {
      gc()
      await new Promise((resolve) => void setImmediate(resolve))
    }
  }
  const heard = async (body: (warnings: Error[]) => Promise<void>): Promise<Error[]> => {
    const warnings: Error[] = []
    const listener = (warning: Error): void => {
      // Others took leases, too.
      if (/"(forgotten|kept|released|run|quiet|overdue)"/.test(warning.message)) warnings.push(warning)
    }
    process.on('warning', listener)
    await body(warnings)
    process.off('warning', listener)
    return warnings
  }
  const takeAndForget = async (holdfast: Holdfast, name: string): Promise<void> => {
    await holdfast.mutex(name).acquire()
  }

  it('and was not released is told once, with its name and where it was taken', async () => {
    const holdfast = locks()
    const warnings = await heard(async (seen) => {
      await takeAndForget(holdfast, 'forgotten')
      await collected(() => seen.length > 0)
    })
    expect(warnings).toMatchObject([{ code: 'HOLDFAST_LEASE_DROPPED' }])
    expect(warnings[0]?.message).toMatch(/"forgotten"/)
    expect((warnings[0] as Error & { detail: string }).detail).toMatch(/mistakes\.test\.ts/)
    // It is still held, as it says.
    await expect(holdfast.mutex('forgotten').tryAcquire()).resolves.toBeNull()
  })

  it.each<[string, () => unknown]>([
    ['makes a list of a stack', () => []],
    [
      'cannot write a stack',
      () => {
        throw new TypeError('in a stack')
      },
    ],
  ])('and was not released is told also where a program %s', async (_, prepare) => {
    const holdfast = locks()
    const before = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')
    const warnings = await heard(async (seen) => {
      await takeAndForget(holdfast, 'forgotten')
      Error.prepareStackTrace = prepare
      try {
        await collected(() => seen.length > 0)
      } finally {
        Reflect.deleteProperty(Error, 'prepareStackTrace')
        if (before !== undefined) Object.defineProperty(Error, 'prepareStackTrace', before)
      }
    })
    expect(warnings).toMatchObject([{ code: 'HOLDFAST_LEASE_DROPPED' }])
  })

  it('and ends by itself is not told', async () => {
    const holdfast = locks()
    const warnings = await heard(async (seen) => {
      const throttle = async (): Promise<void> => {
        await holdfast.mutex('overdue', { renew: false, ttl: 60_000 }).acquire()
        await holdfast.mutex('quiet').acquire({ maxHold: 60_000 })
      }
      await throttle()
      await takeAndForget(holdfast, 'forgotten')
      await collected(() => seen.length > 0)
      await collected(() => seen.length > 1)
    })
    expect(warnings.map(({ message }) => /"(\w+)"/.exec(message)?.[1])).toEqual(['forgotten'])
  })

  it('and was released, or lost, or kept, or not to be told, is not', async () => {
    const [holdfast, quiet] = [locks(), new Holdfast(memoryStore(), { leakWarnings: false })]
    const kept = await holdfast.mutex('kept').acquire()
    const warnings = await heard(async () => {
      await (await holdfast.mutex('released').acquire()).release()
      await holdfast.mutex('run').run(() => 1)
      await takeAndForget(quiet, 'quiet')
      let done = false
      setTimeout(() => (done = true), 50)
      await collected(() => done)
    })
    expect(warnings).toEqual([])
    expect(kept.held).toBe(true)
  })

  it('is not ended by whoever asks whether it was forgotten: that depends on the moment of a collection', async () => {
    const w = world()
    const { holdfast, store } = w.process()
    const warnings = await heard(async (seen) => {
      await w.env.until(
        holdfast
          .mutex('overdue', { ttl: 1000 })
          .acquire()
          .then(() => {}),
      )
      // Its time is over, and no timer has had its turn.
      w.env.stall(1500)
      const before = store.sent.length
      await collected(() => seen.some(({ message }) => message.includes('"overdue"')))
      expect(store.sent.length).toBe(before)
    })
    expect(warnings.some(({ message }) => message.includes('"overdue"'))).toBe(true)
  })

  it('is like any other for downgrade, nesting and sets', async () => {
    const w = world()
    const { holdfast } = w.process()
    const lock = holdfast.readWriteLock('rw')
    const writer = await w.env.until(lock.write.acquire())
    await w.env.until(lock.downgrade(writer))
    await w.env.until(writer.release())
    const set = await w.env.until(holdfast.all(['a', lock.read]).acquire())
    expect(set.held).toBe(true)
    await w.env.until(set.release())
    expect(await isClean(w, 'rw')).toBe(true)
  })
})
