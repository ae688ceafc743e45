import { inspect } from 'node:util'

import { CapacityMismatchError, ClosedError, HoldfastError, LockLostError } from '../../../core/errors.ts'
import type { Lock, ReadWriteLock } from '../../../locks/lock.ts'
import type { Store } from '../../../core/contract.ts'
import { healthOf } from '../../../locks/health.ts'
import { Holdfast } from '../../../locks/holdfast.ts'
import type { Env } from '../../../runtime/env.ts'
import type { Lease } from '../../../runtime/lease.ts'
import type { LeaseSet } from '../../../locks/lock-set.ts'

/** Who makes a call beside the locks. */
export interface Around {
  readonly holdfast: Holdfast
  /** Of its process. */
  readonly env: Env
  /** A lease that it has just then. */
  readonly lease: Lease | LeaseSet | undefined
  /** Nothing is in the way of an answer. */
  readonly calm: boolean
}

/** A call that takes no lock: one of the mistakes that users make, or a look at something. */
export interface Aside {
  readonly what: string
  /** What it has to end with. */
  readonly code: 'INVALID_ARGUMENT' | 'UNSUPPORTED' | 'fine'
  call(around: Around): unknown
}

/** As users of JavaScript write it: nothing is known of its type. */
const any = (value: unknown): never => value as never
const NAME = 'aside'

const mistake = (what: string, call: (around: Around) => unknown): Aside => ({
  what,
  code: 'INVALID_ARGUMENT',
  call,
})
const fine = (what: string, call: (around: Around) => unknown): Aside => ({ what, code: 'fine', call })

/** Options that are wrong wherever a lock is made. */
const LOCK_OPTIONS = [
  { tll: 5 },
  { ttl: -1 },
  { ttl: '5s' },
  { wait: Number.NaN },
  { maxHold: 0 },
  { fair: 'no' },
  { renew: 'no' },
  { reentrant: 1 },
  { signal: null },
  5,
].map((options) =>
  mistake(`mutex with ${inspect(options)}`, ({ holdfast }) => holdfast.mutex(NAME, any(options))),
)

/** Options that are wrong in a call. */
const CALL_OPTIONS = [
  { wiat: 5 },
  { wait: -1 },
  { ttl: 0 },
  { permits: 1 },
  { maxHold: 'long' },
  { signal: {} },
  new AbortController().signal,
].map((options) =>
  mistake(`acquire with ${inspect(options)}`, ({ holdfast }) => holdfast.mutex(NAME).acquire(any(options))),
)

const ABOUT_SETS = [
  mistake('all of nothing', ({ holdfast }) => holdfast.all([])),
  mistake('all of a name', ({ holdfast }) => holdfast.all(any(NAME))),
  mistake('all of a number', ({ holdfast }) => holdfast.all([any(5)])),
  mistake('all of an object', ({ holdfast }) => holdfast.all([any({})])),
  mistake('all of a striped lock', ({ holdfast }) => holdfast.all([any(holdfast.striped(NAME, 2))])),
  mistake('all of both sides at once', ({ holdfast }) => {
    const { shared } = holdfast.store.capabilities
    const both = shared ? holdfast.readWriteLock(NAME) : { write: 1 }
    return holdfast.all([any(both)])
  }),
  mistake('all of one name as two kinds', ({ holdfast }) => {
    if (!holdfast.store.capabilities.shared) return holdfast.all([])
    const { read, write } = holdfast.readWriteLock(NAME)
    return holdfast.all([read, write])
  }),
  mistake('all of a mutex and a writer', ({ holdfast }) => {
    if (!holdfast.store.capabilities.shared) return holdfast.all([])
    return holdfast.all([NAME, holdfast.readWriteLock(NAME).write])
  }),
  mistake('all of a semaphore twice', ({ holdfast }) => {
    if (!holdfast.store.capabilities.permits) return holdfast.all([])
    const permit = (): Lock => holdfast.semaphore(NAME, 2)
    return holdfast.all([permit(), permit()])
  }),
  mistake('all of two Holdfasts', ({ holdfast }) => {
    const other = new Holdfast(holdfast.store, { owner: 'other' })
    return holdfast.all([NAME, other.mutex(NAME)])
  }),
]

const ABOUT_STORES = [
  'redis://localhost',
  undefined,
  null,
  Promise.resolve(),
  {},
  { sendCommand: () => undefined },
  { claim: () => undefined },
].map((store) => mistake(`a store that is ${inspect(store)}`, () => new Holdfast(any(store))))

const ABOUT_OURSELVES = [
  mistake('a store without a kind', ({ holdfast: { store } }) => new Holdfast(any(proxied(store, 'kind')))),
  mistake(
    'a store that does not say what it can',
    ({ holdfast: { store } }) => new Holdfast(any(proxied(store, 'capabilities'))),
  ),
  mistake('no name', ({ holdfast }) => holdfast.mutex('')),
  mistake('a semaphore of nothing', ({ holdfast }) => {
    if (!holdfast.store.capabilities.permits) return holdfast.all([])
    return holdfast.semaphore(NAME, 0)
  }),
  mistake('no stripes', ({ holdfast }) => holdfast.striped(NAME, 0)),
  mistake('a key without text', ({ holdfast }) => holdfast.striped(NAME, 2).for(any({}))),
  mistake('a wait in a try', ({ holdfast }) => holdfast.mutex(NAME).tryAcquire(any({ wait: 5 }))),
  mistake('a body that is none', ({ holdfast }) => holdfast.mutex(NAME).run(any(5))),
  mistake('work that has begun', ({ holdfast }) => holdfast.mutex(NAME).run(any(Promise.resolve()))),
  mistake('outside of nothing', ({ holdfast }) => holdfast.outside(any(undefined))),
  mistake('a list of none', ({ holdfast }) => holdfast.list({ limit: 0 })),
  mistake('a close on no signals', ({ holdfast }) => holdfast.closeOn(any('SIGUSR2'))),
  mistake('no clocks', ({ holdfast: { store } }) => new Holdfast(store, any({ env: {} }))),
  mistake('a close on what nobody hears', ({ holdfast }) => holdfast.closeOn(['SIGKILL'])),
  mistake('a misspelt close', ({ holdfast }) => holdfast.close(any({ drian: 5 }))),
  mistake('a store that can do the impossible', ({ holdfast: { store } }) => {
    const capabilities = { ...store.capabilities, minTtl: 'soon' }
    return new Holdfast(any(replaced(store, 'capabilities', capabilities)))
  }),
  mistake('a downgrade of what only reads, or is no writer at all', async ({ holdfast }) => {
    if (!holdfast.store.capabilities.shared) return holdfast.all([])
    const both = bothSides(holdfast)
    const lease = await both.read.tryAcquire().catch(() => null)
    if (lease === null) return holdfast.all([])
    await using _ = lease
    return await both.downgrade(lease)
  }),
  mistake('a downgrade of a mutex', async ({ holdfast }) => {
    if (!holdfast.store.capabilities.shared) return holdfast.all([])
    const lease = await holdfast
      .mutex(`${NAME}:mutex`)
      .tryAcquire()
      .catch(() => null)
    if (lease === null) return holdfast.all([])
    await using _ = lease
    return await bothSides(holdfast).downgrade(lease)
  }),
  mistake('a downgrade of another kind', async ({ holdfast }) => {
    if (!holdfast.store.capabilities.shared) return holdfast.all([])
    const name = `${NAME}:other kind`
    const lease = await holdfast
      .mutex(name)
      .tryAcquire()
      .catch(() => null)
    if (lease === null) return holdfast.all([])
    await using _ = lease
    return await holdfast.readWriteLock(name).downgrade(lease)
  }),
  mistake('a downgrade of what is nested', async ({ holdfast }) => {
    if (!holdfast.store.capabilities.shared) return holdfast.all([])
    const both = holdfast.readWriteLock(`${NAME}:nested`, { reentrant: true })
    let told: unknown
    const inside = async (): Promise<void> => {
      await using inner = await both.write.acquire()
      await both.downgrade(inner).catch((error: unknown) => (told = error))
    }
    await both.write.run(inside, { wait: 0 }).catch(() => undefined)
    if (told !== undefined && !(told instanceof LockLostError)) throw told as Error
    return holdfast.all([])
  }),
  mistake('a downgrade of something', async ({ holdfast, lease }) => {
    if (!holdfast.store.capabilities.shared) return holdfast.all([])
    return holdfast.readWriteLock(NAME).downgrade(any(lease ?? {}))
  }),
]

/** Another kind of lock of a name, inside of its own section: waiting would never end. */
async function mixedUp(outer: Lock, inner: () => Lock, calm: boolean): Promise<void> {
  const inside = async (lease: Lease): Promise<unknown> => {
    try {
      const own = await inner().tryAcquire()
      await own?.release()
      // Whoever has lost it is inside of nothing.
      return lease.held ? own : undefined
    } catch (error) {
      return error
    }
  }
  // Or nobody was let in.
  const told = await outer.run(inside, { wait: 0 }).catch(() => undefined)
  if (told === undefined || told instanceof CapacityMismatchError || told instanceof ClosedError) return
  if (!calm && told instanceof HoldfastError) return
  throw new Error(`another kind of "${outer.name}" inside of its section: ${inspect(told)}`)
}

async function otherKind({ holdfast, calm }: Around): Promise<void> {
  if (!holdfast.store.capabilities.shared) return
  const name = `${NAME}:kinds`
  await mixedUp(holdfast.readWriteLock(name).read, () => holdfast.mutex(name), calm)
}

async function otherSize({ holdfast, calm }: Around): Promise<void> {
  if (!holdfast.store.capabilities.permits) return
  const name = `${NAME}:sizes`
  await mixedUp(holdfast.semaphore(name, 2), () => holdfast.semaphore(name, 3), calm)
}

/** What a store cannot do is said before it is asked. */
const UNSUPPORTED = (
  [
    ['readers', (holdfast: Holdfast) => holdfast.readWriteLock(NAME)],
    ['permits', (holdfast: Holdfast) => holdfast.semaphore(NAME, 2)],
  ] as const
).map(([what, call]): Aside => ({
  what: `${what} of a store that has none`,
  code: 'UNSUPPORTED',
  call: ({ holdfast: { store } }) => {
    const capabilities = { ...store.capabilities, shared: false, permits: false }
    return call(new Holdfast(any(replaced(store, 'capabilities', capabilities)), { leakWarnings: false }))
  },
}))

const NO_DOWNGRADE: Aside = {
  what: 'a downgrade at a store that has none',
  code: 'UNSUPPORTED',
  async call(around) {
    const { holdfast, env } = around
    const store: Store = any(replaced(holdfast.store, 'downgrade', undefined))
    const own = new Holdfast(store, { env, leakWarnings: false })
    try {
      const both = own.readWriteLock(`${NAME}:no downgrade`)
      const lease = await both.write.tryAcquire().catch(() => null)
      if (lease?.held === true) await both.downgrade(lease)
    } catch (error) {
      if (!(error instanceof LockLostError)) throw error
    } finally {
      await own.close({ drain: 0 })
    }
    // There was none to ask with.
    return UNSUPPORTED[0]?.call(around)
  },
}

const LOOKS = [
  fine('another kind of lock inside', otherKind),
  fine('another size inside', otherSize),
  fine('its health', async ({ holdfast, calm }) => {
    const health = await healthOf(holdfast)
    if (health.status === 'up') return
    const { code } = health
    if (code === 'UNKNOWN' || (calm && code !== 'CLOSED')) throw new Error(`its health is ${code}`)
  }),
  fine('a close on a signal, and not', ({ holdfast }) => {
    const undo = holdfast.closeOn(['SIGUSR2'])
    undo()
    undo()
  }),
  fine('work outside', ({ holdfast }) => holdfast.outside(() => undefined)),
  fine('a page of a list', async ({ holdfast, calm }) => {
    try {
      const { names } = await holdfast.list({ prefix: NAME, limit: 1 })
      if (names.length > 1) throw new Error('a page is longer than was asked for')
      await holdfast.list()
    } catch (error) {
      if (calm || !(error instanceof HoldfastError)) throw error
    }
  }),
  fine('keys of every kind', ({ holdfast }) => {
    const striped = holdfast.striped(NAME, 2)
    return [striped.for(7), striped.for(7n), striped.for('7')]
  }),
  fine('everything as text', ({ holdfast, lease }) => {
    const set = holdfast.all([NAME, 'other'])
    if (holdfast.closed) return []
    const shown = [holdfast, set, holdfast.mutex(NAME, { reentrant: true }), lease].map((one) => inspect(one))
    const { permits } = holdfast.store.capabilities
    return [...shown, permits ? inspect(holdfast.semaphore(NAME, 2)) : '']
  }),
  fine('a lease that is asked', ({ lease }) => (lease?.held === true ? lease.assertHeld({ atLeast: 0 }) : 0)),
  fine('a lease that is asked for too much', ({ lease }) => {
    try {
      lease?.assertHeld({ atLeast: 3_600_000 })
    } catch (error) {
      if (error instanceof LockLostError) return
      throw error
    }
    if (lease !== undefined) throw new Error('no lease lasts an hour here')
  }),
]

export const ASIDES: readonly Aside[] = [
  ...LOOKS,
  ...LOCK_OPTIONS,
  ...CALL_OPTIONS,
  ...ABOUT_SETS,
  ...ABOUT_STORES,
  ...ABOUT_OURSELVES,
  ...UNSUPPORTED,
  NO_DOWNGRADE,
]

/** They are the first, and show more than a mistake does. */
export const LOOKS_OFTEN: readonly number[] = [
  ...ASIDES.keys(),
  ...Array.from({ length: 3 }, () => [...LOOKS.keys()]).flat(),
]

/** The store without one of its properties. */
function proxied(store: object, without: string): object {
  return replaced(store, without, undefined)
}

function replaced(store: object, what: string, value: unknown): object {
  return new Proxy(store, {
    get: (target, key) => (key === what ? value : (Reflect.get(target, key) as unknown)),
  })
}

function bothSides(holdfast: Holdfast): ReadWriteLock {
  return holdfast.readWriteLock(`${NAME}:both`)
}
