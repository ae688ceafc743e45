// Broken libraries and broken stores, for the lab to find. Clients of the lab are processes of their own and load the build.
import { setTimeout as sleep } from 'node:timers/promises'

import { openLibrary } from '../../../dist/lab/live/library.js'

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
      const downgrade = (lease) => both.downgrade(lease)
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

/** Whoever is given a lock hears of it three seconds late. */
export const wakesLate = (order) =>
  withLocks(order, (lock) =>
    acquiring(lock, async (go) => {
      const lease = await go()
      await sleep(order.lateMs ?? 3000)
      return lease
    }),
  )

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
