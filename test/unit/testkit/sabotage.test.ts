import { describe, expect, it } from 'vitest'

import type { ClaimRequest, RenewRequest, Store } from '../../../src/core/contract.ts'
import { conformance } from '../../../src/testkit/conformance.ts'
import { runCase } from '../../../src/testkit/run-case.ts'
import { changed, plain, virtualTarget, withGrants } from './lesser-stores.ts'

/** A mistake that a store could make, and the cases that must notice it. */
interface Flaw {
  readonly flaw: string
  readonly make: (store: Store) => Store
  readonly caughtBy: readonly string[]
}

/** A store that gets other requests than it was sent. */
function requested(
  store: Store,
  change: (request: ClaimRequest) => ClaimRequest,
  renewed: (request: RenewRequest) => RenewRequest = (request) => request,
): Store {
  return changed(store, {
    claim: (request, timeout) => store.claim(change(plain(request)), timeout),
    renew: (requests, timeout) => store.renew(requests.map(renewed), timeout),
    release: (claim, next, timeout) => store.release(claim, next && change(plain(next)), timeout),
  })
}

const times = (factor: number): ((store: Store) => Store) => {
  return (store) =>
    requested(
      store,
      (request) => ({ ...request, ttl: request.ttl * factor }),
      ({ name, id, ttl, patience, tokens }) => ({ name, id, ttl: ttl * factor, patience, tokens }),
    )
}

/** Another name for what was asked. */
function renamed(store: Store, rename: (name: string) => string): Store {
  const named = <T extends { readonly name: string }>(given: T): T => ({ ...given, name: rename(given.name) })
  return changed(store, {
    claim: (request, timeout) => store.claim(named(plain(request)), timeout),
    release: ({ name, id }, next, timeout) =>
      store.release({ name: rename(name), id }, next && named(plain(next)), timeout),
    inspect: async (name, timeout) => ({ ...(await store.inspect(rename(name), timeout)), name }),
  })
}

async function release(store: Store, name: string, timeout: number): Promise<void> {
  const info = await store.inspect(name, timeout)
  if ('kind' in info) return
  for (const { id } of info.holders) await store.release({ name, id }, undefined, timeout)
}

const flaws: readonly Flaw[] = [
  {
    flaw: 'releases whatever is held, whoever asks',
    make: (store) =>
      changed(store, {
        release: async (claim, next, timeout) => {
          await release(store, claim.name, timeout)
          return store.release(claim, next, timeout)
        },
      }),
    caughtBy: ['release/stranger', 'release/late', 'release/twice'],
  },
  {
    flaw: 'takes a repeated claim for a new one',
    make: (store) => {
      let sent = 0
      return changed(store, {
        claim: (request, timeout) =>
          store.claim({ ...plain(request), id: `${request.id}-${(sent += 1)}` }, timeout),
      })
    },
    caughtBy: ['claim/repeated'],
  },
  {
    flaw: 'brings a claim back when it is renewed',
    make: (store) => {
      const seen = new Map<string, ClaimRequest>()
      return changed(store, {
        claim: (request, timeout) => {
          seen.set(request.id, plain(request))
          return store.claim(request, timeout)
        },
        renew: async (requests, timeout) => {
          for (const { id } of requests) {
            const request = seen.get(id)
            if (request !== undefined) await store.claim({ ...request, whenBusy: 'try' }, timeout)
          }
          return store.renew(requests, timeout)
        },
      })
    },
    caughtBy: ['renew/expired', 'renew/released'],
  },
  {
    flaw: 'forgets that a claim was withdrawn',
    make: (store) =>
      changed(store, {
        withdraw: async (claim, timeout) => (await store.release(claim, undefined, timeout)).released,
      }),
    caughtBy: ['withdraw/late-copy', 'withdraw/overtakes', 'withdraw/waiter', 'withdraw/fused'],
  },
  {
    flaw: 'gives every grant the same token',
    make: (store) =>
      changed(store, {
        claim: async (request, timeout) =>
          withGrants(await store.claim(request, timeout), (held) => ({ ...held, token: 7n })),
      }),
    caughtBy: ['tokens/grow', 'tokens/expiry', 'tokens/withdrawn'],
  },
  {
    flaw: 'reserves one token for a block of many',
    make: (store) =>
      changed(store, {
        claim: async (request, timeout) =>
          withGrants(await store.claim({ ...plain(request), tokens: 1 }, timeout), (held) => ({
            ...held,
            count: request.tokens,
          })),
      }),
    caughtBy: ['tokens/blocks', 'tokens/shared'],
  },
  {
    flaw: 'queues a try',
    make: (store) =>
      changed(store, {
        claim: async (request, timeout) => {
          const answer = await store.claim({ ...plain(request), whenBusy: 'queue' }, timeout)
          return request.whenBusy === 'try' && answer.kind === 'queued' ? { kind: 'busy' } : answer
        },
      }),
    caughtBy: ['claim/try-leaves-nothing', 'cancel/no-wait', 'all/or-none'],
  },
  { flaw: 'keeps a dead holder for too long', make: times(50), caughtBy: ['expiry/frees', 'renew/expired'] },
  {
    flaw: 'forgets a holder too early',
    make: times(0.5),
    caughtBy: ['expiry/frees', 'expiry/waiter', 'lease/lost'],
  },
  {
    flaw: 'keeps a silent waiter for ever',
    make: (store) => requested(store, (request) => ({ ...request, patience: 1e9 })),
    caughtBy: ['expiry/silent-waiter', 'expiry/not-picked-up'],
  },
  {
    flaw: 'promises to tell waiters, and does not',
    make: (store) => changed(store, { watch: (session) => store.watch(session, () => undefined, 0) }),
    caughtBy: ['events/granted', 'events/contended', 'queue/wakes-one', 'lock/strict'],
  },
  {
    flaw: 'tells everybody what happens to anybody',
    make: (store) => {
      const listeners = new Set<Parameters<Store['watch']>[1]>()
      return changed(store, {
        watch: async (session, listener, timeout) => {
          listeners.add(listener)
          return store.watch(session, (event) => listeners.forEach((tell) => tell(event)), timeout)
        },
      })
    },
    caughtBy: ['events/own'],
  },
  {
    flaw: 'answers a batch in another order',
    make: (store) =>
      changed(store, {
        renew: async (requests, timeout) => (await store.renew(requests, timeout)).toReversed(),
      }),
    caughtBy: ['renew/mixed', 'renew/mixed-waiters'],
  },
  {
    flaw: 'answers the first of a batch only',
    make: (store) =>
      changed(store, {
        renew: async (requests, timeout) => (await store.renew(requests, timeout)).slice(0, 1),
      }),
    caughtBy: ['renew/mixed', 'renew/thousand'],
  },
  {
    flaw: 'lets one more in than fits',
    make: (store) => requested(store, (request) => ({ ...request, capacity: request.capacity + 1 })),
    caughtBy: ['claim/taken', 'claim/at-once', 'lock/hundred', 'lock/semaphore', 'permits/capacity'],
  },
  {
    flaw: 'takes readers for strangers',
    make: (store) => requested(store, (request) => ({ ...request, weight: request.capacity })),
    caughtBy: ['share/readers', 'permits/capacity', 'lock/readers-writers'],
  },
  {
    flaw: 'lets readers in beside a writer',
    make: (store) => requested(store, (request) => ({ ...request, weight: Math.min(request.weight, 1) })),
    caughtBy: ['share/writer', 'lock/readers-writers', 'permits/head-first'],
  },
  {
    flaw: 'says that a writer is a reader, and leaves it what it is',
    make: (store) => changed(store, { downgrade: () => ({ kind: 'downgraded' }) }),
    caughtBy: ['downgrade/readers', 'downgrade/queue', 'downgrade/not-held', 'lock/downgrade'],
  },
  {
    flaw: 'releases a writer and has it come back as a reader',
    make: (store) => {
      const seen = new Map<string, ClaimRequest>()
      return changed(store, {
        claim: (request, timeout) => {
          seen.set(request.id, plain(request))
          return store.claim(request, timeout)
        },
        downgrade: async (claim, timeout) => {
          const request = seen.get(claim.id)
          const { released } = await store.release(claim, undefined, timeout)
          if (request === undefined || released.kind !== 'released') return { kind: 'lost' }
          await store.claim({ ...request, weight: 1 }, timeout)
          return { kind: 'downgraded' }
        },
      })
    },
    caughtBy: ['downgrade/token', 'downgrade/queue', 'downgrade/waiter'],
  },
  {
    flaw: 'lets nobody in until it is asked again',
    make: (store) => {
      const asked = new Set<string>()
      return changed(store, {
        downgrade: async (claim, timeout) => {
          if (asked.has(claim.id)) return store.downgrade?.(claim, timeout) ?? { kind: 'lost' }
          asked.add(claim.id)
          const info = await store.inspect(claim.name, timeout)
          const held = 'holders' in info && info.holders.some(({ id }) => id === claim.id)
          return held ? { kind: 'downgraded' } : { kind: 'lost' }
        },
      })
    },
    caughtBy: ['downgrade/readers', 'downgrade/queue', 'downgrade/token'],
  },
  {
    flaw: 'downgrades once, and does not know what it did when it is asked again',
    make: (store) => {
      const done = new Set<string>()
      return changed(store, {
        downgrade: (claim, timeout) => {
          if (done.has(claim.id)) return { kind: 'lost' }
          done.add(claim.id)
          return store.downgrade?.(claim, timeout) ?? { kind: 'lost' }
        },
      })
    },
    caughtBy: ['downgrade/repeated', 'downgrade/renewed'],
  },
  {
    flaw: 'prolongs the lease along with a downgrade',
    make: (store) =>
      changed(store, {
        downgrade: async (claim, timeout) => {
          const { name, id } = claim
          await store.renew([{ name, id, ttl: 60_000, patience: 60_000, tokens: 0 }], timeout)
          return store.downgrade?.(claim, timeout) ?? { kind: 'lost' }
        },
      }),
    caughtBy: ['downgrade/expiry'],
  },
  {
    flaw: 'ignores the case of names',
    make: (store) => renamed(store, (name) => name.toLowerCase()),
    caughtBy: ['names/alike'],
  },
  {
    flaw: 'cuts spaces off names',
    make: (store) => renamed(store, (name) => name.trim()),
    caughtBy: ['names/alike'],
  },
  {
    flaw: 'cuts long names',
    make: (store) => renamed(store, (name) => name.slice(0, 255)),
    caughtBy: ['names/long'],
  },
  {
    flaw: 'ignores the second half of a release',
    make: (store) =>
      changed(store, {
        release: async (claim, next, timeout) => {
          const { released } = await store.release(claim, undefined, timeout)
          return next === undefined ? { released } : { released, next: { kind: 'queued' } }
        },
      }),
    caughtBy: ['queue/fused', 'queue/fused-alone', 'queue/fused-repeated'],
  },
  {
    flaw: 'shows names that begin like a pattern',
    make: (store) =>
      changed(store, {
        list: async (query, timeout) => {
          const page = await store.list({ ...query, prefix: '' }, timeout)
          if ('kind' in page) return page
          const pattern = new RegExp(
            `^${(query.prefix ?? '').replaceAll(/[*%]/g, '.*').replaceAll(/[?_]/g, '.')}`,
          )
          return { ...page, names: page.names.filter((name) => pattern.test(name)) }
        },
      }),
    caughtBy: ['list/prefix'],
  },
  {
    flaw: 'shows the first page only',
    make: (store) =>
      changed(store, {
        list: async (query, timeout) => {
          const page = await store.list(query, timeout)
          return 'kind' in page ? page : { names: page.names }
        },
      }),
    caughtBy: ['list/pages'],
  },
  {
    flaw: 'says nothing about those who wait',
    make: (store) =>
      changed(store, {
        renew: async (requests, timeout) => {
          const answers = await store.renew(requests, timeout)
          return answers.map((answer) =>
            answer.kind === 'renewed' ? { ...answer, contended: false } : answer,
          )
        },
        watch: (session, listener, timeout) =>
          store.watch(session, (event) => event.kind !== 'contended' && listener(event), timeout),
      }),
    caughtBy: ['queue/contended', 'events/contended', 'lock/strict'],
  },
  {
    flaw: 'never mentions that another capacity is in use',
    make: (store) => {
      const capacities = new Map<string, number>()
      return requested(store, (request) => {
        const capacity = capacities.get(request.name) ?? request.capacity
        capacities.set(request.name, capacity)
        return { ...request, capacity, weight: Math.min(request.weight, capacity) }
      })
    },
    caughtBy: ['claim/mismatch', 'claim/new-capacity'],
  },
]

describe('a store that', () => {
  for (const { flaw, make, caughtBy } of flaws) {
    it(`${flaw} is caught by ${caughtBy.join(', ')}`, async () => {
      for (const id of caughtBy) {
        const testCase = conformance().find((candidate) => candidate.id === id)
        if (testCase === undefined) throw new Error(`there is no case ${id}`)
        const { status } = await runCase(testCase, virtualTarget(1, make))
        expect([id, status]).toEqual([id, 'failed'])
      }
    })
  }
})
