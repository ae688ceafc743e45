import type { Capabilities, Held, Store } from '../../../src/core/contract.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import type { Target } from '../../../src/testkit/case.ts'
import { sharedStore } from '../../../src/testkit/shared-store.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'

/** A memory store on a virtual clock, changed by `change`; every client sees the same one. */
export function virtualTarget(seed: number, change: (store: Store) => Store = (store) => store): Target {
  const env = new VirtualEnv({ seed })
  const store = change(memoryStore({ now: () => env.instant() }))
  return { name: store.kind, env, createStore: () => sharedStore(store) }
}

/** The store with some of its methods replaced. */
export function changed(store: Store, changes: Partial<Store>): Store {
  return { ...sharedStore(store), ...changes }
}

function limited(store: Store, limits: Partial<Capabilities>, changes: Partial<Store>): Store {
  return changed(store, { capabilities: { ...store.capabilities, ...limits }, ...changes })
}

/** Keeps a queue, but tells nobody anything, like a table in a database. */
export function silentStore(store: Store): Store {
  return limited(store, { wakeups: 'poll' }, { watch: (session) => store.watch(session, () => undefined, 0) })
}

/** Knows one holder per name and no queue, like a cache with an `add` command. */
export function plainStore(store: Store): Store {
  const limits = { queue: false, shared: false, permits: false, wakeups: 'poll', minTtl: 1000 } as const
  return limited(store, limits, {
    kind: 'plain',
    claim: (request, timeout) => store.claim({ ...plain(request), whenBusy: 'try' }, timeout),
    release: async (claim, next, timeout) => {
      const { released } = await store.release(claim, undefined, timeout)
      return next === undefined ? { released } : { released, next: { kind: 'busy' } }
    },
  })
}

/** A store that answers later, like everything behind a network. */
export function distantStore(store: Store, env: VirtualEnv): Store {
  const { downgrade } = store
  const late = async <T>(answer: () => T | Promise<T>): Promise<T> => {
    await env.sleep(env.random() * 4)
    const made = await answer()
    await env.sleep(env.random() * 4)
    return made
  }
  return changed(store, {
    claim: (request, timeout) => late(() => store.claim(request, timeout)),
    renew: (requests, timeout) => late(() => store.renew(requests, timeout)),
    release: (claim, next, timeout) => late(() => store.release(claim, next, timeout)),
    withdraw: (claim, timeout) => late(() => store.withdraw(claim, timeout)),
    ...(downgrade && { downgrade: (claim, timeout) => late(() => downgrade.call(store, claim, timeout)) }),
    watch: (session, listener, timeout) =>
      late(() =>
        store.watch(
          session,
          (event) => void env.setTimer(() => listener(event), env.random() * 4, true),
          timeout,
        ),
      ),
  })
}

/** The fields of a request, out of whatever object carries them. */
export function plain<T extends Parameters<Store['claim']>[0]>(request: T): Parameters<Store['claim']>[0] {
  const { name, id, weight, capacity, ttl, patience, tokens, whenBusy, owner } = request
  return { name, id, weight, capacity, ttl, patience, tokens, whenBusy, owner }
}

/** Answers as they were, but for the grants in them. */
export function withGrants<T>(answer: T, change: (held: Held) => Held): T {
  const held = typeof answer === 'object' && answer !== null && 'kind' in answer && answer.kind === 'held'
  return held ? (change(answer as unknown as Held) as T) : answer
}
