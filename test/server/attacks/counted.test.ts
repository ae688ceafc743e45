import fc from 'fast-check'
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest'

import type { ClaimRequest } from '../../../src/core/contract.ts'
import { Audit } from '../../../src/server/audit.ts'
import { ClaimRegistry } from '../../../src/server/claim-registry.ts'
import type { Caller } from '../../../src/server/caller.ts'
import { Failure } from '../../../src/server/failure.ts'
import { resolveLimits } from '../../../src/server/limits.ts'
import { Problems } from '../../../src/server/problems.ts'
import { ANYBODY } from '../../../src/server/rights.ts'
import { LockService } from '../../../src/server/service.ts'
import { Sessions } from '../../../src/server/sessions.ts'
import { MemoryStore } from '../../../src/stores/memory/store.ts'

/**
 * Limits go by what the book counts. Whatever a client sends, in whatever order: what the store keeps for it is in the book,
 * and there are no more of it than the limits allow.
 */

const CALLER: Caller = { principal: ANYBODY, remote: '-', request: '-' }
const LIMITS = { waitersPerName: 2, waitersPerPrincipal: 3, leasesPerPrincipal: 4 }

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

class Desk {
  now = 1000
  readonly store = new MemoryStore({ now: () => ({ ms: this.now, micros: this.now * 1000 }) })
  readonly registry = new ClaimRegistry('memory', () => this.now)
  readonly service: LockService

  constructor() {
    const limits = resolveLimits(LIMITS)
    const problems = new Problems()
    const sessions = new Sessions(this.store, this.registry, limits)
    const audit = new Audit(undefined, problems)
    const parts = { store: this.store, registry: this.registry, sessions, audit, limits, problems }
    this.service = new LockService({ ...parts, auditRequired: false })
    for (const session of ['s', 't']) this.store.watch(session, (event) => this.registry.told(event))
  }

  pass(ms: number): void {
    this.now += ms
    this.store.expire()
    // The book looks once a second.
    vi.advanceTimersByTime(1000)
  }

  async run(step: Step): Promise<void> {
    const { service } = this
    const { name, id } = step.claim
    try {
      if (step.kind === 'claim') await service.claim(CALLER, step.claim, 0)
      if (step.kind === 'release') await service.release(CALLER, { name, id }, undefined, 0)
      if (step.kind === 'next') await service.release(CALLER, { name, id }, step.next, 0)
      if (step.kind === 'withdraw') await service.withdraw(CALLER, { name, id }, 0)
      if (step.kind === 'downgrade') await service.downgrade(CALLER, { name, id }, 0)
      if (step.kind === 'renew') await service.renew(CALLER, [{ ...step.claim, tokens: 0 }], 0)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
    }
  }

  /** What the store keeps and the book does not know. */
  uncounted(): string[] {
    return [...this.store.states()].flatMap(([name, { holders, waiters }]) =>
      [...holders.values(), ...waiters.values()]
        .filter(({ id }) => !this.registry.knows({ name, id }))
        .map(({ id }) => `${name} ${id}`),
    )
  }

  numbers(): { held: number; waiting: number; inOneLine: number } {
    const all = [...this.store.states()].map(([, { holders, waiters }]) => ({
      held: [...holders.values()].length,
      waiting: waiters.size,
    }))
    return {
      held: all.reduce((sum, { held }) => sum + held, 0),
      waiting: all.reduce((sum, { waiting }) => sum + waiting, 0),
      inOneLine: Math.max(0, ...all.map(({ waiting }) => waiting)),
    }
  }
}

interface Step {
  readonly kind: 'claim' | 'release' | 'next' | 'withdraw' | 'downgrade' | 'renew'
  readonly claim: ClaimRequest
  readonly next: ClaimRequest
  readonly after: number
}

/** A grant is told after the command that made it. */
const told = (): Promise<void> => Promise.resolve()

const times = fc.constantFrom(100, 2000, 60_000)
/** Few of them, so that they meet again: with other times, in another mode, and now and then under another name. */
const claim: fc.Arbitrary<ClaimRequest> = fc
  .record({
    number: fc.nat({ max: 7 }),
    session: fc.constantFrom('s', 's', 's', 't'),
    elsewhere: fc.constantFrom(0, 0, 0, 0, 0, 1),
    capacity: fc.constantFrom(1, 1, 1, 1, 1, 1, 2, 2 ** 31 - 1),
    ttl: times,
    patience: times,
    whenBusy: fc.constantFrom('queue', 'queue', 'try'),
  })
  .map(({ number, session, elsewhere, ...some }) => {
    const name = 'ab'.charAt((number + elsewhere) % 2)
    return { ...some, name, id: `${session}.${number}`, weight: 1, tokens: 1, owner: 'o' }
  })

const step: fc.Arbitrary<Step> = fc
  .record({
    kind: fc.constantFrom(
      'claim',
      'claim',
      'claim',
      'next',
      'renew',
      'renew',
      'release',
      'withdraw',
      'downgrade',
    ),
    claim,
    next: claim,
    same: fc.boolean(),
    after: fc.constantFrom(0, 0, 0, 50, 1000, 2500),
  })
  .map(({ same, ...one }) => (same ? { ...one, next: { ...one.next, name: one.claim.name } } : one))

const wanting = (name: string, id: string, ms: { ttl: number; patience: number }): ClaimRequest => ({
  name,
  id,
  weight: 1,
  capacity: 1,
  tokens: 1,
  owner: 'o',
  whenBusy: 'queue',
  ...ms,
})
const SHORT = { ttl: 100, patience: 2000 }
const LONG = { ttl: 60_000, patience: 60_000 }

function opened(): Desk {
  const desk = new Desk()
  onTestFinished(() => desk.registry.close())
  return desk
}

it('claims nothing for another name along with a release', () => {
  const desk = opened()
  const next = wanting('b', 's.1', LONG)
  const answer = desk.service.release(CALLER, { name: 'a', id: 's.0' }, next, 0)
  expect(answer).toMatchObject({ released: { kind: 'not-held' }, next: { kind: 'unknown' } })
  expect(desk.numbers()).toEqual({ held: 0, waiting: 0, inOneLine: 0 })
})

it('puts nobody into a full line along with a release', async () => {
  const desk = opened()
  for (const number of [0, 1, 2]) await desk.service.claim(CALLER, wanting('a', `s.${number}`, LONG), 0)
  const answer = desk.service.release(CALLER, { name: 'a', id: 's.9' }, wanting('a', 's.3', LONG), 0)
  expect(answer).toMatchObject({ next: { kind: 'unknown', cause: { code: 'TOO_MANY' } } })
  expect(desk.numbers()).toEqual({ held: 1, waiting: 2, inOneLine: 2 })
})

it.each(['renews', 'claims again'] as const)(
  'goes on counting a waiter that %s with a longer ttl, when its turn has come',
  async (way) => {
    const desk = opened()
    await desk.service.claim(CALLER, wanting('a', 's.0', LONG), 0)
    await desk.service.claim(CALLER, wanting('a', 's.1', SHORT), 0)
    const longer = wanting('a', 's.1', LONG)
    if (way === 'renews') await desk.service.renew(CALLER, [longer], 0)
    else await desk.service.claim(CALLER, longer, 0)
    await desk.service.release(CALLER, { name: 'a', id: 's.0' }, undefined, 0)
    await told()
    desk.pass(5000)
    expect(desk.numbers().held).toBe(1)
    expect(desk.uncounted()).toEqual([])
    expect(desk.registry.ttlOf({ name: 'a', id: 's.1' })).toBe(LONG.ttl)
  },
)

it('counts all that the store keeps, and keeps within the limits, whatever is sent', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const desk = new Desk()
      try {
        for (const one of steps) {
          await desk.run(one)
          await told()
          if (one.after > 0) desk.pass(one.after)
          await told()
          expect(desk.uncounted()).toEqual([])
          const { waiting, inOneLine, held } = desk.numbers()
          expect(inOneLine).toBeLessThanOrEqual(LIMITS.waitersPerName)
          expect(waiting).toBeLessThanOrEqual(LIMITS.waitersPerPrincipal)
          // Whoever waits is granted, whatever else it holds.
          expect(held).toBeLessThanOrEqual(LIMITS.leasesPerPrincipal + LIMITS.waitersPerPrincipal)
        }
      } finally {
        desk.registry.close()
        desk.store.close()
      }
    }),
    { numRuns: 150, seed: 20 },
  )
})
