// Broken libraries and broken stores, for the lab to find. Clients of the lab are processes of their own and load the build.
import { setTimeout as sleep } from 'node:timers/promises'

import { openLibrary } from '../../../dist/lab/live/library.js'

/** What is behind a lease that lies. */
const TRUE = new WeakMap()

/** Much later than a waiter is told of what is free, and less than the long section that the lab asks for when a fault is over. */
const LATE_MS = 2000

/** Holdfast as it is, with something done to every lock that it makes. */
async function withLocks(order, change) {
  const { library: _, ...rest } = order
  const holdfast = await openLibrary(rest)
  const changed = (lock) => change(lock) ?? lock
  return {
    store: holdfast.store,
    mutex: (name, options) => changed(holdfast.mutex(name, options)),
    semaphore: (name, capacity) => changed(holdfast.semaphore(name, capacity)),
    readWriteLock: (name) => {
      const both = holdfast.readWriteLock(name)
      const downgrade = (lease) => both.downgrade(TRUE.get(lease) ?? lease)
      return { name, read: changed(both.read), write: changed(both.write), downgrade }
    },
    close: () => holdfast.close(),
    holdfast,
  }
}

/** The same lock with an `acquire` of another kind. */
function acquiring(lock, acquire) {
  const given = (options) => acquire(() => lock.acquire(options), options)
  return {
    name: lock.name,
    acquire: given,
    tryAcquire: (options) => lock.tryAcquire(options),
    run: async (body, options) => lock.run(body, options),
  }
}

/** Nothing is wrong with it. */
export const sound = (order) => withLocks(order, () => undefined)

/** Dies of an exception that nobody caught, some time into the run. */
export async function dies(order) {
  const client = await sound(order)
  setTimeout(() => {
    throw new TypeError('planted: cannot read properties of undefined')
  }, order.ttl)
  return client
}

/** Every other acquire rejects with an error that is none of ours. */
export function rejects(order) {
  let calls = 0
  return withLocks(order, (lock) =>
    acquiring(lock, (go) => {
      calls += 1
      return calls % 2 === 0 ? Promise.reject(new TypeError('planted: x is not a function')) : go()
    }),
  )
}

export async function closeHangs(order) {
  return { ...(await sound(order)), close: () => new Promise(() => {}) }
}

export async function closeThrows(order) {
  const client = await sound(order)
  const close = async () => {
    await client.close()
    throw new RangeError('planted: closed twice')
  }
  return { ...client, close }
}

/** A store that is told of only some of the releases, and a library that says it has told it of all. */
export async function forgetsReleases(order) {
  const client = await sound(order)
  let calls = 0
  const { store } = client.holdfast
  const { release } = store
  store.release = (claim, next, timeout) => {
    calls += 1
    if (calls % 3 !== 0 || next !== undefined) return release.call(store, claim, next, timeout)
    return { released: { kind: 'released' } }
  }
  return client
}

/** Renewals of what is held are answered by nobody: "1", as a proxy in between might. */
export async function renewsNothing(order) {
  const client = await sound(order)
  const { store } = client.holdfast
  const { claim, renew } = store
  const held = new Set()
  store.claim = async (request, timeout) => {
    const answer = await claim.call(store, request, timeout)
    if (answer.kind === 'held') held.add(request.id)
    return answer
  }
  store.renew = async (requests, timeout) => {
    const asked = requests.filter(({ id, tokens }) => tokens > 0 || !held.has(id))
    const answers = asked.length === 0 ? [] : await renew.call(store, asked, timeout)
    asked.forEach(({ id }, index) => answers[index].kind === 'held' && held.add(id))
    return requests.map((request) =>
      asked.includes(request) ? answers[asked.indexOf(request)] : { kind: 'renewed', contended: false },
    )
  }
  return client
}

/** Whoever is given a mutex hears of it three seconds late, now and then. What several may hold is seldom free. */
export async function wakesLate(order) {
  const client = await sound(order)
  let calls = 0
  const late = async (lease) => {
    calls += 1
    if (calls % 20 === 2) await sleep(3000)
    return lease
  }
  const mutex = (name, options) => acquiring(client.mutex(name, options), async (go) => late(await go()))
  return { ...client, mutex }
}

/**
 * Every third is told nothing, whatever it waits for, and finds out half a second later; where the store is slow to answer, so much later.
 * Of mutexes alone they are little more than the one of ten that may be late.
 */
export async function losesWakeUps(order) {
  let calls = 0
  const client = await withLocks(order, (lock) =>
    acquiring(lock, async (go) => {
      const lease = await go()
      calls += 1
      if (calls % 3 !== 0) return lease
      const asked = performance.now()
      await client.store.inspect(lease.name, 5000)
      await sleep(500 + 100 * (performance.now() - asked))
      return lease
    }),
  )
  return client
}

/** Nobody is ever given anything. */
export const grantsNothing = (order) =>
  withLocks(order, (lock) => {
    const never = (options) =>
      new Promise((_, reject) => {
        options?.signal?.addEventListener('abort', () => reject(new Error('it was told to end')), {
          once: true,
        })
      })
    return {
      name: lock.name,
      acquire: never,
      tryAcquire: async () => null,
      run: (_, options) => never(options),
    }
  })

/** Says that it is held until the store has confirmed the release. */
export const heldUntilReleased = (order) =>
  withLocks(order, (lock) =>
    acquiring(lock, async (go) => {
      const lease = await go()
      let over = false
      const { token, name, signal } = lease
      return {
        token,
        name,
        signal,
        get held() {
          return !over && !signal.aborted
        },
        remaining: () => (over ? 0 : Math.max(1, lease.remaining())),
        assertHeld: () => lease.assertHeld(),
        async release() {
          const outcome = await lease.release()
          over = true
          return outcome
        },
      }
    }),
  )

/** The same lease with something else in it. */
function lied(lease, more) {
  const lie = Object.defineProperties(
    {},
    {
      token: { get: () => lease.token, configurable: true },
      name: { get: () => lease.name },
      signal: { get: () => lease.signal },
      held: { get: () => lease.held },
      remaining: { value: () => lease.remaining() },
      assertHeld: { value: (options) => lease.assertHeld(options) },
      release: { value: () => lease.release() },
      ...Object.fromEntries(Object.entries(more).map(([key, value]) => [key, { value }])),
    },
  )
  TRUE.set(lie, lease)
  return lie
}

/** Nobody is ever told that a lease is lost. */
export const neverAborts = (order) =>
  everywhere(order, (lease) => lied(lease, { signal: new AbortController().signal }))

/** All permits have the same token; other locks have tokens of their own. */
export async function repeatsPermitTokens(order) {
  const client = await sound(order)
  const semaphore = (name, capacity) =>
    acquiring(client.semaphore(name, capacity), async (go) => lied(await go(), { token: 7n }))
  return { ...client, semaphore }
}

/** Its clocks run at half of the true speed: it believes for longer than the store does. */
export async function slowClock({ library: _, ...order }) {
  const { Holdfast } = await import('../../../dist/index.js')
  const { openStore } = await import('../../../dist/open.js')
  const { systemEnv } = await import('../../../dist/runtime/env.js')
  const began = { mono: systemEnv.mono(), boot: systemEnv.boot(), wall: systemEnv.wall() }
  const slow = (clock) => () => began[clock] + (systemEnv[clock]() - began[clock]) * 0.5
  const env = { ...systemEnv, mono: slow('mono'), boot: slow('boot'), wall: slow('wall') }
  const { ttl, patience, requestTimeout, label: owner } = order
  return new Holdfast(await openStore(order.url), {
    closeStore: true,
    ttl,
    patience,
    requestTimeout,
    owner,
    env,
  })
}

/** Tries are always refused. */
export const refusesTries = (order) =>
  withLocks(order, (lock) => ({ ...acquiring(lock, (go) => go()), tryAcquire: async () => null }))

/** A wait that nobody wants any more goes on for a while. */
export const goesOnWaiting = (order) =>
  withLocks(order, (lock) =>
    acquiring(lock, async (go, { signal }) => {
      try {
        return await go()
      } catch (error) {
        if (signal?.aborted === true) await sleep(1500)
        throw error
      }
    }),
  )

/** Whatever is given back inside of a section gives back what is around it, too. */
export const innerEndsOuter = (order) =>
  withLocks(order, (lock) => {
    let around
    const taken = acquiring(lock, async (go) => {
      const lease = await go()
      const outer = around
      if (outer === undefined) return lease
      const release = async () => {
        const outcome = await lease.release()
        await outer.release()
        return outcome
      }
      return lied(lease, { release })
    })
    const run = (body, options) =>
      lock.run(async (lease) => {
        around = lease
        return body(lease).finally(() => (around = undefined))
      }, options)
    return { ...taken, run }
  })

/** `assertHeld` throws while the lease is held, and says nothing afterwards. */
export const assertsWrong = (order) =>
  withLocks(order, (lock) =>
    acquiring(lock, async (go) => {
      const lease = await go()
      const assertHeld = () => {
        if (lease.held) throw new Error('planted: not held')
      }
      return lied(lease, { assertHeld })
    }),
  )

/** Permits and readers go one at a time, as if each asked for everything. */
export async function oneAtATime(order) {
  const client = await sound(order)
  const permits = (name, capacity) => {
    const lock = client.semaphore(name, capacity)
    const all = (options) => ({ ...options, permits: capacity })
    return {
      name,
      acquire: (options) => lock.acquire(all(options)),
      tryAcquire: (options) => lock.tryAcquire(all(options)),
    }
  }
  const readWriteLock = (name) => {
    const { write, downgrade } = client.readWriteLock(name)
    return { name, read: write, write, downgrade }
  }
  return { ...client, semaphore: permits, readWriteLock }
}

/** What it makes locks with throws, once it was used for a while. */
export async function throwsAtOnce(order) {
  const client = await sound(order)
  let calls = 0
  const mutex = (name, options) => {
    calls += 1
    if (calls === 5) throw new TypeError('planted: undefined is not iterable')
    return client.mutex(name, options)
  }
  return { ...client, mutex }
}

/** Some clients are never given anything, and the others are. */
export const someGetNothing = (order) => (order.label === 'client 2' ? grantsNothing(order) : sound(order))

/** Once the store did not answer, it is woken late, for ever, whatever it waits for. */
export async function neverRecovers(order) {
  let broken = false
  const client = await withLocks(order, (lock) =>
    acquiring(lock, async (go) => {
      const lease = await go()
      if (broken) await sleep(LATE_MS)
      return lease
    }),
  )
  const { store } = client.holdfast
  const { renew } = store
  store.renew = async (requests, timeout) => {
    const answers = await renew.call(store, requests, timeout)
    broken ||= answers.some(({ kind }) => kind === 'unknown')
    return answers
  }
  return client
}

/** Leases of permits are not renewed; those of other locks are. */
export async function renewsNoPermits(order) {
  const client = await sound(order)
  const { store } = client.holdfast
  const { renew } = store
  store.renew = async (requests, timeout) => {
    // A request with tokens is one for a place in line.
    const asked = requests.filter(({ name, tokens }) => tokens > 0 || !name.endsWith(':permits'))
    const answers = asked.length === 0 ? [] : await renew.call(store, asked, timeout)
    return requests.map((request) => answers[asked.indexOf(request)] ?? { kind: 'lost' })
  }
  return client
}

/** `run` ends without having called its function, and a wait that may last for some milliseconds ends at once. */
export const givesUpAtOnce = async (order) => {
  const { StoreUnavailableError } = await import('../../../dist/index.js')
  return withLocks(order, (lock) => ({
    ...acquiring(lock, (go, { wait }) => {
      if (wait <= 60) throw new StoreUnavailableError('planted: no answer')
      return go()
    }),
    run: async () => undefined,
  }))
}

/**
 * Tries and releases of permits are answered late, these releases with "unknown", and of a mutex's lease nothing is ever left. Whatever
 * the machine: permits are tried for, taken and given back where clients are told to meet.
 */
export async function vague(order) {
  const client = await sound(order)
  const late = async (ms, answer) => {
    await sleep(ms)
    return answer
  }
  const permits = (lease) =>
    lied(lease, { release: async () => late(1100, (await lease.release(), 'unknown')) })
  const semaphore = (name, capacity) => {
    const lock = client.semaphore(name, capacity)
    const taken = acquiring(lock, async (go) => permits(await go()))
    return { ...taken, tryAcquire: async (how) => late(600, await lock.tryAcquire(how)) }
  }
  const mutex = (name, options) =>
    acquiring(client.mutex(name, options), async (go) => lied(await go(), { remaining: () => 0 }))
  return { ...client, semaphore, mutex }
}

/** Whoever dies in line stays there for ever. */
export async function diesInLine(order) {
  const client = await sound(order)
  const { store } = client.holdfast
  const { claim, renew } = store
  const patient = (request) => ({ ...request, patience: 3_600_000 })
  store.claim = (request, timeout) => claim.call(store, patient(request), timeout)
  store.renew = (requests, timeout) => renew.call(store, requests.map(patient), timeout)
  return client
}

/** Whatever way a lease is asked for, something in it is a lie. */
function leases(lock, lie) {
  return {
    ...acquiring(lock, async (go) => lie(await go())),
    tryAcquire: async (options) => {
      const lease = await lock.tryAcquire(options)
      return lease && lie(lease)
    },
    run: (body, options) => lock.run((lease) => body(lie(lease)), options),
  }
}

/** Of every lock, for a fault may strike its victim in any of them. */
const everywhere = (order, lie) => withLocks(order, (lock) => leases(lock, lie))

/** Its permits say that they are not held. */
export async function permitsNotHeld(order) {
  const client = await sound(order)
  const semaphore = (name, capacity) =>
    leases(client.semaphore(name, capacity), (lease) => lied(lease, { held: false }))
  return { ...client, semaphore }
}

/** Mutexes alone: a lease that is not the library's own cannot be downgraded. */
async function mutexes(order, lie) {
  const client = await sound(order)
  return { ...client, mutex: (name, options) => leases(client.mutex(name, options), lie) }
}

/** Its leases say that they are good for an hour. */
export const goodForAnHour = (order) =>
  mutexes(order, (lease) => lied(lease, { remaining: () => (lease.held ? 3_600_000 : 0) }))

/** Its leases are never good for long enough to write. */
export const neverGoodForLong = (order) =>
  mutexes(order, (lease) => lied(lease, { remaining: () => Math.min(100, lease.remaining()) }))

/** Whoever asks for how long it will last is told that it is held now. */
export const assertsNow = (order) =>
  mutexes(order, (lease) => lied(lease, { assertHeld: () => lease.assertHeld() }))

/** Every third mutex is lost when it is given, and its release says that it was not. */
export function deadOnArrival(order) {
  let count = 0
  const dead = {
    held: false,
    remaining: () => 0,
    signal: AbortSignal.abort(),
    assertHeld() {
      throw new Error('planted: lost')
    },
  }
  return mutexes(order, (lease) => {
    count += 1
    return count % 3 === 0 ? lied(lease, dead) : lease
  })
}

/** What is left of a lease is the whole of it, until it is lost. */
export const alwaysFull = (order) =>
  everywhere(order, (lease) => lied(lease, { remaining: () => (lease.held ? order.ttl : 0) }))

/** Releases say that they gave back what was lost long before. */
export const releasesTheLost = (order) =>
  everywhere(order, (lease) => {
    const release = async () => {
      await lease.release()
      return 'released'
    }
    return lied(lease, { release })
  })

/** Waits that end in vain end with nothing instead of an error. */
export const endsWithNothing = (order) =>
  withLocks(order, (lock) =>
    acquiring(lock, async (go) => {
      try {
        return await go()
      } catch (error) {
        if (error.code === 'LOCK_TIMEOUT' || error.code === 'LOCK_ABORTED') return null
        throw error
      }
    }),
  )

/**
 * Whoever wants to wait for a short time only is told, after a while, that the store did not answer. Each of them: how many waits end in vain
 * depends on the machine.
 */
export async function blamesTheStore(order) {
  const { StoreUnavailableError } = await import('../../../dist/index.js')
  return withLocks(order, (lock) =>
    acquiring(lock, async (go, { wait }) => {
      if (wait > 1000) return go()
      await sleep(wait + 700)
      throw new StoreUnavailableError('planted: no answer')
    }),
  )
}

/** A try waits for its turn. */
export const triesWait = (order) =>
  withLocks(order, (lock) => ({
    ...acquiring(lock, (go) => go()),
    tryAcquire: (options) => lock.acquire({ ...options, wait: 30_000 }),
  }))

/** A semaphore has a permit more than it should. */
export async function oneTooMany(order) {
  const client = await sound(order)
  return { ...client, semaphore: (name, capacity) => client.semaphore(name, capacity + 1) }
}

/** A lease is renewed for a while, and not longer. */
export async function renewsForAWhile(order) {
  const client = await sound(order)
  const { store } = client.holdfast
  const { renew } = store
  const since = new Map()
  store.renew = async (requests, timeout) => {
    const now = performance.now()
    for (const { id } of requests) if (!since.has(id)) since.set(id, now)
    // A request with tokens is one for a place in line.
    const asked = requests.filter(({ id, tokens }) => tokens > 0 || now - since.get(id) < order.ttl * 1.6)
    const answers = asked.length === 0 ? [] : await renew.call(store, asked, timeout)
    return requests.map((request) => answers[asked.indexOf(request)] ?? { kind: 'lost' })
  }
  return client
}

/** A writer that is to go on as a reader gives its lock back, and says that it holds it. */
export async function downgradesToNothing(order) {
  const client = await sound(order)
  const readWriteLock = (name) => {
    const both = client.readWriteLock(name)
    const write = leases(both.write, (lease) => new Shadow(lease, order.ttl))
    return { ...both, name, write, downgrade: (lease) => lease.leave() }
  }
  return { ...client, readWriteLock }
}

/** A lease that goes on when what is behind it was given back. */
class Shadow {
  constructor(lease, ttl) {
    Object.assign(this, { lease, ttl, left: false, over: false })
    this.signal = new AbortController().signal
  }
  get token() {
    return this.lease.token
  }
  get held() {
    return !this.over && (this.left || this.lease.held)
  }
  remaining() {
    return this.held ? (this.left ? this.ttl : this.lease.remaining()) : 0
  }
  assertHeld({ atLeast = 0 } = {}) {
    if (this.remaining() <= atLeast) throw new Error('planted: not held')
  }
  async leave() {
    this.left = true
    await this.lease.release()
  }
  async release() {
    this.over = true
    return this.left ? 'released' : this.lease.release()
  }
}

/** Writers go on as readers after a while. */
export async function downgradesLate(order) {
  const client = await sound(order)
  const readWriteLock = (name) => {
    const both = client.readWriteLock(name)
    const downgrade = async (lease) => {
      await sleep(1300)
      return both.downgrade(lease)
    }
    return { ...both, name, downgrade }
  }
  return { ...client, readWriteLock }
}

/** What is taken once more inside of its own section takes a while. */
export const nestsLate = (order) =>
  withLocks(order, (lock) => {
    let inside = false
    const taken = acquiring(lock, async (go) => {
      if (inside) await sleep(1300)
      return go()
    })
    const run = (body, options) =>
      lock.run(async (lease) => {
        inside = true
        return body(lease).finally(() => (inside = false))
      }, options)
    return { ...taken, run }
  })

/** Says that it is closed, and keeps its connections. */
export async function closesNothing(order) {
  return { ...(await sound(order)), close: () => Promise.resolve() }
}

/** Reaches the store by a way of its own, as a driver does that is told another host. The module's own address says which. */
export const goesRound = (order) =>
  sound({ ...order, url: new URL(import.meta.url).searchParams.get('store') })

/** Whoever asks for a token again is told another one. */
export const countsOn = (order) =>
  everywhere(order, (lease) => {
    const { token } = lease
    const asked = performance.now()
    const lie = lied(lease, {})
    Object.defineProperty(lie, 'token', { get: () => token + (performance.now() - asked > 5 ? 1n : 0n) })
    return lie
  })

/** What is done inside of `run` is not what it returns. */
export const keepsTheAnswer = (order) =>
  withLocks(order, (lock) => ({
    ...acquiring(lock, (go) => go()),
    run: async (body, options) => void (await lock.run(body, options)),
  }))

/** Whoever has run its function keeps the lock for a while. What is taken inside is a share of it. */
export async function runKeepsIts(order) {
  const client = await sound(order)
  const mutex = (name) => {
    const lock = client.mutex(name)
    let inside
    const share = () => lied(inside, { release: async () => 'released' })
    const run = async (body, options) => {
      const lease = (inside = await lock.acquire(options))
      const ended = () => {
        inside = undefined
        setTimeout(() => void lease.release(), 300)
      }
      return body(lease).finally(ended)
    }
    return { ...acquiring(lock, (go) => (inside === undefined ? go() : share())), run }
  }
  return { ...client, mutex }
}

/** Whoever asks for several permits is given one. */
export async function countsPermitsAsOne(order) {
  const client = await sound(order)
  const semaphore = (name, capacity) => {
    const lock = client.semaphore(name, capacity)
    const one = (options) => ({ ...options, permits: 1 })
    return {
      name,
      acquire: (options) => lock.acquire(one(options)),
      tryAcquire: (options) => lock.tryAcquire(one(options)),
    }
  }
  return { ...client, semaphore }
}

/** Leases that say that they are on another lock. */
export const namesAnother = (order) => everywhere(order, (lease) => lied(lease, { name: 'another' }))

/** Tokens in numbers, which are not exact for all that a store can count to. */
export const countsInNumbers = (order) =>
  everywhere(order, (lease) => lied(lease, { token: Number(lease.token) }))
