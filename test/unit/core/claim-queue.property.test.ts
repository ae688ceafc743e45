import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { emptyQueue, sessionOf, step, view } from '../../../src/core/claim-queue.ts'
import { actions, askerOf, grantsOf, QueueWorld, shapes } from './queue-world.ts'
import type { Action, Done } from './queue-world.ts'

const CAPACITIES = [1, 3, 2 ** 31 - 1] as const
const RUNS = { numRuns: 200 }

/** Runs random actions and calls `check` after each command. */
function always(check: (world: QueueWorld, done: Done) => void): void {
  for (const capacity of CAPACITIES) {
    fc.assert(
      fc.property(actions(capacity), (run) => {
        const world = new QueueWorld(capacity)
        for (const action of run) {
          const done = world.act(action)
          if (done !== undefined) check(world, done)
        }
      }),
      RUNS,
    )
  }
}

describe('the claim queue, whatever happens to it', () => {
  it('never lets the weights held exceed the capacity', () => {
    always(({ state, ms }) => {
      const holders = [...state.holders.values()]
      const sum = holders.reduce((total, { weight }) => total + weight, 0)
      expect(state.used).toBe(sum)
      expect(sum).toBeLessThanOrEqual(state.capacity)
      for (const { expiresAt } of holders) {
        expect(expiresAt).toBeGreaterThan(ms)
        expect(expiresAt).toBeGreaterThanOrEqual(state.nextExpiry)
      }
    })
  })

  it('knows every claim in at most one place', () => {
    always(({ state }) => {
      const holders = [...state.holders.values()].map(({ id }) => id)
      const ids = [...holders, ...state.waiters.keys(), ...state.withdrawn.keys()]
      expect(new Set(ids).size).toBe(ids.length)
    })
  })

  it('never grants or queues a withdrawn claim again', () => {
    always(({ state, withdrawn }) => {
      for (const id of withdrawn) expect(state.holders.get(id) ?? state.waiters.get(id)).toBeUndefined()
    })
  })

  it('gives tokens that only grow, block by block', () => {
    for (const capacity of CAPACITIES) {
      fc.assert(
        fc.property(actions(capacity), (run) => {
          const world = new QueueWorld(capacity)
          let last = 0n
          for (const action of run) {
            const done = world.act(action)
            for (const { token, count } of done === undefined ? [] : grantsOf(done)) {
              expect(token).toBeGreaterThan(last)
              last = token + BigInt(count) - 1n
            }
          }
        }),
        RUNS,
      )
    }
  })

  it('grants nobody before a live waiter ahead of it that can be told', () => {
    always((world, done) => {
      const passed = new Set(world.waiting())
      for (const { id } of grantsOf(done)) {
        const place = done.waitedBefore.indexOf(id)
        const renewed = done.heldBefore.includes(id)
        const ahead = renewed ? [] : place === -1 ? done.waitedBefore : done.waitedBefore.slice(0, place)
        expect(ahead.filter((other) => passed.has(other) && world.reachable(sessionOf(other)))).toEqual([])
      }
    })
  })

  it('keeps those who wait in the order in which they came', () => {
    always((world, { waitedBefore }) => {
      const now = world.waiting()
      const stayed = waitedBefore.filter((id) => now.includes(id))
      expect(now.slice(0, stayed.length)).toEqual(stayed)
    })
  })

  it('leaves no capacity unused that the first waiter it can tell could have', () => {
    always((world, { command, heldBefore }) => {
      // A holder's renewal changes nothing for the others, and a withdrawn claim has no say.
      const asker = askerOf(command)
      const idle = command.kind === 'claim' || command.kind === 'renew'
      if (idle && (heldBefore.includes(asker) || world.withdrawn.has(asker))) return
      const { used, capacity, waiters } = world.state
      const live = world.waiting()
      const first = live.findIndex((id) => world.reachable(sessionOf(id)))
      const upToFirst = live.slice(0, first + 1).map((id) => waiters.get(id)?.weight ?? 0)
      expect(first === -1 || upToFirst.some((weight) => used + weight > capacity)).toBe(true)
    })
  })

  it('tells every holder that somebody waits behind it', () => {
    for (const capacity of CAPACITIES) {
      fc.assert(
        fc.property(actions(capacity), (run) => {
          const world = new QueueWorld(capacity)
          const told = new Map<string, boolean>()
          for (const action of run) {
            const done = world.act(action)
            if (done === undefined) continue
            hear(told, done)
            if (world.waiting().length === 0) continue
            for (const id of world.holding()) expect([id, told.get(id)]).toEqual([id, true])
          }
        }),
        RUNS,
      )
    }
  })
})

/** What each holder believes about the queue behind it. */
function hear(told: Map<string, boolean>, done: Done): void {
  const { command, outcome } = done
  for (const { event } of outcome.notices) {
    if (event.kind === 'granted') told.set(event.id, event.contended)
    if (event.kind === 'contended') told.set(event.id, true)
  }
  const answer = 'released' in outcome.answer ? outcome.answer.next : outcome.answer
  if (answer?.kind !== 'held' && answer?.kind !== 'renewed') return
  const id = command.kind === 'release' ? command.next?.id : 'request' in command ? command.request.id : ''
  told.set(id ?? '', answer.contended)
}

describe('a command that is sent twice', () => {
  it('leaves what the first one made, and says so', () => {
    always((world, done) => {
      const { command } = done
      if (command.kind === 'renew' && command.request.tokens > 0) return
      const before = view(world.state, 'n', world.now())
      const again = world.run(command)
      const after = view(world.state, 'n', world.now())
      expect(again.outcome.notices.filter(({ event }) => event.kind === 'granted')).toEqual([])
      expect(after.holders.map(({ id, token }) => [id, token])).toEqual(
        before.holders.map(({ id, token }) => [id, token]),
      )
      expect(after.waiters.map(({ id }) => id)).toEqual(before.waiters.map(({ id }) => id))
      expect(standing(again)).toBe(standing(done))
    })
  })

  it('gives a fresh block of tokens, and no second grant, when it asked for tokens', () => {
    always((world, { command, outcome: { answer } }) => {
      if (command.kind !== 'renew' || command.request.tokens === 0 || !('kind' in answer)) return
      const again = world.run(command).outcome.answer
      if (answer.kind !== 'held') return
      expect('token' in again && again.token > answer.token).toBe(true)
    })
  })
})

/** Where a command left the claim that it asked for. A withdrawal asks for none. */
function standing({ outcome: { answer }, command }: Done): string | undefined {
  if (command.kind === 'withdraw') return undefined
  const kind = 'released' in answer ? answer.next?.kind : answer.kind
  return kind === 'renewed' ? 'held' : kind
}

describe('a name on which everything has run out', () => {
  it('answers like one that was never used', () => {
    for (const capacity of CAPACITIES) {
      const probe = fc.oneof(
        fc.record({ do: fc.constant('claim' as const), session: fc.nat(3), shape: shapes(capacity) }),
        fc.record({ do: fc.constant('repeat' as const), which: fc.nat(200) }),
        fc.record({ do: fc.constant('withdraw' as const), which: fc.nat(200) }),
        fc.record({ do: fc.constant('downgrade' as const), which: fc.nat(200) }),
        fc.record({
          do: fc.constant('renew' as const),
          which: fc.nat(200),
          tokens: fc.nat(2),
          ttl: fc.constant(10),
        }),
        fc.record({
          do: fc.constant('release' as const),
          which: fc.nat(200),
          next: fc.option(shapes(capacity), { nil: undefined }),
        }),
      )
      fc.assert(
        fc.property(
          actions(capacity),
          probe,
          fc.constantFrom(capacity, capacity + 1),
          (run, last, wanted) => {
            const world = new QueueWorld(capacity)
            for (const action of run) world.act(action)
            world.ms += 100_000
            expect(view(world.state, 'n', world.now())).toMatchObject({ holders: [], waiters: [] })
            const done = actWithCapacity(world, last, wanted)
            if (done === undefined) return
            const fresh = step(emptyQueue(world.state.fence), done.command, world.now())
            expect(withoutTokens(done.outcome)).toEqual(withoutTokens(fresh))
          },
        ),
        RUNS,
      )
    }
  })
})

function actWithCapacity(world: QueueWorld, action: Action, capacity: number): Done | undefined {
  if (action.do !== 'claim') return world.act(action)
  return world.run({ kind: 'claim', request: world.request(action.session, action.shape, capacity) })
}

/** Which token it is depends on those before; that it grows has a test of its own. */
function withoutTokens(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, part: unknown) => (key === 'token' ? 'a token' : part)))
}

describe('waiters that keep renewing', () => {
  it('are all granted in the end when everybody else releases', () => {
    for (const capacity of CAPACITIES) {
      fc.assert(
        fc.property(actions(capacity), (run) => {
          const world = new QueueWorld(capacity)
          for (const action of run) world.act(action)
          world.unreachable.clear()
          const waiting = new Set(world.waiting())
          const granted = new Set<string>()
          for (let round = 0; round <= world.requests.length; round += 1) {
            for (const id of world.holding()) {
              if (waiting.has(id)) granted.add(id)
              world.run({ kind: 'release', claim: { name: 'n', id } })
            }
            for (const id of world.waiting()) {
              world.run({ kind: 'renew', request: { name: 'n', id, ttl: 50, patience: 50, tokens: 0 } })
            }
            world.ms += 5
          }
          expect(world.waiting()).toEqual([])
          expect(granted).toEqual(waiting)
        }),
        RUNS,
      )
    }
  })
})

describe('a renewal that is answered with a grant', () => {
  it('lasts for the ttl that the renewal asked for', () => {
    always((world, { command, outcome: { answer } }) => {
      if (command.kind !== 'renew' || !('kind' in answer) || answer.kind !== 'held') return
      const { id, ttl } = command.request
      expect(world.state.holders.get(id)?.expiresAt).toBe(world.ms + ttl)
    })
  })
})
