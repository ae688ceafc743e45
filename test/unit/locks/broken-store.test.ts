import { describe, expect, it } from 'vitest'

import { BrokenStoreError, Holdfast } from '../../../src/index.ts'
import type { NameInfo } from '../../../src/core/contract.ts'
import type { Store, StoreListener } from '../../../src/store.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'

type Method =
  | 'claim'
  | 'renew'
  | 'release'
  | 'withdraw'
  | 'downgrade'
  | 'watch'
  | 'inspect'
  | 'list'
  | 'close'

type Then = (done: (value: unknown) => void, fail: (error: Error) => void) => void

/** A promise of somebody else's library. */
// eslint-disable-next-line unicorn/no-thenable -- that is the point
const thenable = (then: Then): object => ({ then })

/** An object of a connection that is gone: whatever is asked of it throws. */
const UNREADABLE: unknown = new Proxy(
  {},
  {
    has: () => true,
    get() {
      throw new Error('the other side is gone')
    },
  },
)

/** What a store must not do, one at a time. */
const FAULTS: Readonly<Record<string, () => unknown>> = {
  'returns undefined': () => undefined,
  'resolves undefined': () => Promise.resolve(undefined),
  'resolves null': () => Promise.resolve(null),
  throws: () => {
    throw new TypeError('of undefined')
  },
  rejects: () => Promise.reject(new Error('socket closed')),
  'rejects nothing': () => Promise.reject(undefined as unknown as Error),
  'answers with another kind': () => ({ kind: 'OK' }),
  'answers with a number': () => 1,
  'answers with text': () => 'OK',
  'answers with an empty list': () => [],
  'answers with a list of nothing': () => [undefined],
  'grants without a token': () => ({ kind: 'held', count: 1, contended: false }),
  'grants a number': () => ({ kind: 'held', token: 1, count: 1, contended: false }),
  'says when with a bigint': () => ({ kind: 'busy', retryAfter: 5n }),
  'says when with null': () => ({ kind: 'queued', retryAfter: null }),
  'says in a list when with a bigint': () => [{ kind: 'queued', retryAfter: 5n }],
  'says when with text': () => ({ kind: 'queued', retryAfter: 'soon' }),
  'shows claims without ids': () => ({ name: 'x', capacity: 1, holders: [{ owner: 'me' }], waiters: [] }),
  'shows nothing as a claim': () => ({ name: 'x', capacity: 1, holders: [null], waiters: [] }),
  'answers with what cannot be read': () => UNREADABLE,
  'resolves what cannot be read': () => Promise.resolve([UNREADABLE]),
  'never answers': () => new Promise(() => {}),
  'is a thenable that fails': () => thenable((_, fail) => fail(new Error('later'))),
  'answers with a list of promises that fail': () => [Promise.reject(new Error('not waited for'))],
  'answers with promises that fail': () => ({ released: Promise.reject(new Error('not waited for')) }),
}
const METHODS: readonly Method[] = [
  'claim',
  'renew',
  'release',
  'withdraw',
  'downgrade',
  'watch',
  'inspect',
  'list',
  'close',
]

interface World {
  readonly env: VirtualEnv
  readonly holdfast: Holdfast
  readonly other: Holdfast
}

/** Somebody else's store: ours, but for one method that does something else. */
function world(replace: Partial<Record<Method, (...args: never[]) => unknown>>): World {
  const env = new VirtualEnv()
  const server = memoryStore({ now: () => env.instant() })
  const call = (method: Method): unknown =>
    replace[method] ?? (server[method] as (...args: unknown[]) => unknown).bind(server)
  const store = {
    kind: 'theirs',
    capabilities: server.capabilities,
    ...Object.fromEntries(METHODS.map((method) => [method, call(method)])),
  } as unknown as Store
  const options = { env, ttl: 1000, requestTimeout: 200 }
  return {
    env,
    holdfast: new Holdfast(store, { ...options, closeStore: true }),
    other: new Holdfast(server, options),
  }
}

const outcome = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error)

/** Uses everything once, and says what came of it. Must come to an end. */
async function useAll({ env, holdfast, other }: World): Promise<unknown[]> {
  const lock = holdfast.readWriteLock('x')
  const seen: unknown[] = []
  const did = async (promise: Promise<unknown>): Promise<void> =>
    void seen.push(await env.until(outcome(promise), 60_000))
  await did(lock.write.run(() => env.sleep(1500), { wait: 3000 }))
  await did(lock.write.tryAcquire().then((lease) => lease?.release()))
  await did(lock.write.run((lease) => lock.downgrade(lease)))
  const held = await env.until(other.readWriteLock('x').write.acquire())
  const waiting = did(lock.write.run(() => 1, { wait: 500 }))
  await env.advance(100)
  await env.until(held.release())
  await waiting
  await did(holdfast.inspect('x'))
  await did(holdfast.list())
  await did(holdfast.close({ drain: 0, timeout: 1000 }))
  // What is under way still comes to its end.
  await env.advance(5000)
  return seen
}

const unhandled: unknown[] = []
process.on('unhandledRejection', (reason) => unhandled.push(reason))

describe.each(METHODS)('a store whose %s', (method) => {
  const caller: Partial<Record<Method, true>> = { claim: true, inspect: true, list: true }
  it.each(Object.entries(FAULTS))('%s: nothing dies, nothing hangs, and it is told', async (fault, act) => {
    const warnings: Error[] = []
    const heard = (warning: Error): number => warnings.push(warning)
    process.on('warning', heard)
    const seen = await useAll(world({ [method]: act }))
    // A claim is withdrawn only when it is in doubt.
    if (method === 'withdraw')
      await useAll(world({ withdraw: act, claim: () => ({ kind: 'unknown', cause: 'lost' }) }))
    // Warnings and rejections that nobody handles are told in the next round of the loop.
    await new Promise((resolve) => void setImmediate(resolve))
    process.off('warning', heard)
    expect(unhandled).toEqual([])
    const broken = seen.filter((one) => one instanceof BrokenStoreError)
    for (const error of broken) expect(error).toMatchObject({ store: 'theirs', method })
    // What close answers is nobody's business, nor how long it takes, once its caller has waited long enough.
    const told = method === 'close' && !/^(throws|rejects|is a)/.test(fault)
    const codes = warnings.map((warning) => (warning as Error & { code?: string }).code)
    const toldOf = broken.length + codes.filter((code) => code === 'HOLDFAST_STORE_BROKEN').length
    expect(toldOf > 0 || told).toBe(true)
    expect(broken.length > 0 || caller[method] !== true).toBe(true)
    expect(seen).toHaveLength(7)
  })
})

describe('a store whose guards', () => {
  it.each([
    ['throws', FAULTS['throws']],
    ['answers with what cannot be read', FAULTS['answers with what cannot be read']],
    ['answers with a promise', () => Promise.resolve(false)],
    ['answers with a promise that fails', FAULTS['rejects']],
    ['is no method', undefined],
  ])('%s: the lock goes to the next one by way of the store, and it is told', async (_, act) => {
    const warnings: Error[] = []
    const heard = (warning: Error): number => warnings.push(warning)
    process.on('warning', heard)
    const env = new VirtualEnv()
    const server = memoryStore({ now: () => env.instant() })
    const store = Object.assign(Object.create(server) as Store, { guards: act ?? true })
    const holdfast = new Holdfast(store, { env, ttl: 1000 })
    const mutex = holdfast.mutex('x')
    const sections = [1, 2, 3].map((value) => mutex.run(() => env.sleep(1500).then(() => value)))
    expect(await env.until(Promise.all(sections))).toEqual([1, 2, 3])
    const lease = await env.until(mutex.acquire())
    const next = mutex.acquire({ wait: 100 })
    await expect(env.until(lease.release())).resolves.toBe('released')
    await expect(env.until((await env.until(next)).release())).resolves.toBe('released')
    expect(await env.until(holdfast.inspect('x'))).toMatchObject({ holders: [], waiters: [] })
    await new Promise((resolve) => void setImmediate(resolve))
    process.off('warning', heard)
    expect(unhandled).toEqual([])
    expect(warnings).toMatchObject([{ code: 'HOLDFAST_STORE_BROKEN' }])
    expect(warnings[0]?.message).toContain('guards()')
  })
})

describe('a store that leaves out what it does not find', () => {
  it('is believed about none of those it was asked about: which answer is whose, nobody can say', async () => {
    const warnings: Error[] = []
    const heard = (warning: Error): number => warnings.push(warning)
    process.on('warning', heard)
    const env = new VirtualEnv()
    const server = memoryStore({ now: () => env.instant() })
    // As of an UPDATE … RETURNING, which has a row for each that is there.
    const found: Store['renew'] = async (requests, timeout) =>
      (await server.renew(requests, timeout)).filter(({ kind }) => kind !== 'lost')
    const store = Object.assign(Object.create(server) as Store, { renew: found })
    const holdfast = new Holdfast(store, { env, ttl: 1000 })
    const [first] = await env.until(Promise.all(['x', 'y'].map((name) => holdfast.mutex(name).acquire())))
    const [holder] = (server.inspect('x', 0) as NameInfo).holders
    await server.withdraw({ name: 'x', id: holder?.id ?? '' }, 0)
    const others = new Holdfast(server, { env, ttl: 60_000 })
    const other = await env.until(others.mutex('x').acquire())
    await env.advance(1000)
    expect({ ours: first?.held, theirs: other.held }).toEqual({ ours: false, theirs: true })
    await new Promise((resolve) => void setImmediate(resolve))
    process.off('warning', heard)
    expect(warnings).toMatchObject([{ code: 'HOLDFAST_STORE_BROKEN' }])
    expect(warnings[0]?.message).toContain('answered 1 of 2 requests')
  })
})

describe('a store whose watch comes when it was given up', () => {
  it.each(['before', 'after'])('has it stopped when the Holdfast is closed: %s that', async (when) => {
    const env = new VirtualEnv()
    const server = memoryStore({ now: () => env.instant() })
    const late: (() => void)[] = []
    let open = 0
    const watch: Store['watch'] = () =>
      new Promise((resolve) => {
        late.push(() => {
          open++
          resolve({ kind: 'watching', stop: () => void open-- })
        })
      })
    const store = Object.assign(Object.create(server) as Store, { watch })
    const holdfast = new Holdfast(store, { env, requestTimeout: 100 })
    await env.until(new Holdfast(server, { env }).mutex('x').acquire())
    const waits = holdfast.mutex('x').acquire({ wait: 10_000 })
    await env.until(outcome(waits))
    expect(late.length).toBeGreaterThan(1)
    const answer = async (): Promise<void> => {
      for (const each of late) each()
      await env.advance(1)
      expect(open).toBe(when === 'before' ? late.length : 0)
    }
    if (when === 'before') await answer()
    await env.until(holdfast.close({ drain: 0 }))
    expect(open).toBe(0)
    if (when === 'after') for (const each of late) each()
    await env.advance(1)
    expect(open).toBe(0)
  })
})

describe('a store whose watch, when it is to stop,', () => {
  it.each(['throws', 'rejects', 'rejects nothing', 'is a thenable that fails'])(
    '%s: nothing dies, and it is told',
    async (fault) => {
      const warnings: Error[] = []
      const heard = (warning: Error): number => warnings.push(warning)
      process.on('warning', heard)
      const seen = await useAll(world({ watch: () => ({ kind: 'watching', stop: FAULTS[fault] }) }))
      await new Promise((resolve) => void setImmediate(resolve))
      process.off('warning', heard)
      expect(unhandled).toEqual([])
      expect(seen.at(-1)).toMatchObject({ cutShort: [] })
      expect(warnings).toMatchObject([{ code: 'HOLDFAST_STORE_BROKEN' }])
      expect(warnings[0]?.message).toContain('watch()')
    },
  )
})

describe('a store with promises of its own kind', () => {
  it('is as good as any', async () => {
    const env = new VirtualEnv()
    const server = memoryStore({ now: () => env.instant() })
    const own = (method: Method): [string, unknown] => [
      method,
      (...args: unknown[]) => {
        const answer: unknown = (server[method] as (...given: unknown[]) => unknown)(...args)
        return thenable((done) => done(answer))
      },
    ]
    const store = {
      kind: 'theirs',
      capabilities: server.capabilities,
      ...Object.fromEntries(METHODS.map(own)),
    }
    const holdfast = new Holdfast(store as unknown as Store, { env })
    await expect(env.until(holdfast.mutex('x').run((lease) => lease.held))).resolves.toBe(true)
    await expect(env.until(holdfast.inspect('x'))).resolves.toMatchObject({ holders: [] })
  })

  it('may say what it likes by itself: only what means something is believed', async () => {
    let tell: StoreListener = () => {}
    const env = new VirtualEnv()
    const server = memoryStore({ now: () => env.instant() })
    const watch: Store['watch'] = (session, listener, timeout) => {
      tell = listener
      return server.watch(session, listener, timeout)
    }
    const store = Object.assign(Object.create(server) as Store, { watch })
    const holdfast = new Holdfast(store, { env })
    const lease = await env.until(holdfast.mutex('x').acquire())
    await env.until(
      holdfast
        .mutex('x')
        .acquire({ wait: 10 })
        .catch(() => {}),
    )
    const info = await server.inspect('x', 100)
    const id = 'kind' in info ? '' : (info.holders[0]?.id ?? '')
    for (const said of [
      undefined,
      null,
      1,
      {},
      { kind: 'hello', name: 'x', id },
      { kind: 'granted', name: 'x', id },
    ])
      expect(() => tell(said as never)).not.toThrow()
    expect(lease.held).toBe(true)
    tell({ kind: 'revoked', name: 'x', id })
    expect(lease.held).toBe(false)
  })
})

describe('after a gap', () => {
  /** A store that looks at names in its own way, with so many that somebody waits for, and the function that tells of a gap. */
  async function waiting(
    count: number,
    inspect: (server: Store, name: string) => unknown,
  ): Promise<{ readonly env: VirtualEnv; readonly gap: () => void; readonly end: () => Promise<unknown> }> {
    const env = new VirtualEnv()
    const server = memoryStore({ now: () => env.instant() })
    let tell: StoreListener = () => {}
    const watch: Store['watch'] = (session, listener, timeout) => {
      tell = listener
      return server.watch(session, listener, timeout)
    }
    const theirs = { watch, inspect: (name: string) => inspect(server, name) }
    const holdfast = new Holdfast(Object.assign(Object.create(server) as Store, theirs), { env })
    const other = new Holdfast(server, { env })
    const names = Array.from({ length: count }, (_, index) => `x${index}`)
    for (const name of names) await other.mutex(name).acquire()
    const waits = names.map((name) => outcome(holdfast.mutex(name).acquire({ wait: 500 })))
    await env.advance(100)
    return { env, gap: () => tell({ kind: 'gap' }), end: () => env.until(Promise.all(waits)) }
  }

  it('a look at names that shows claims without ids ends nothing', async () => {
    const { gap, end } = await waiting(2, async (server, name) => {
      const info = (await server.inspect(name, 100)) as NameInfo
      return { ...info, holders: info.holders.map(({ id: _, ...claim }) => claim) }
    })
    gap()
    await end()
    await new Promise((resolve) => void setImmediate(resolve))
    expect(unhandled).toEqual([])
  })

  it('thousands of names are looked at, by a store that answers at once', async () => {
    let looks = 0
    const { gap, end } = await waiting(6000, (server, name) => {
      looks++
      return server.inspect(name, 100)
    })
    expect(gap).not.toThrow()
    expect(looks).toBe(6000)
    expect(gap).not.toThrow()
    expect(looks).toBe(12_000)
    await end()
  })
})
