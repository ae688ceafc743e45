import { describe, expect, it } from 'vitest'

import { emptyQueue, step } from '../../../src/core/claim-queue.ts'
import type { AnswerOf, QueueCommand } from '../../../src/core/claim-queue.ts'
import type { ClaimRequest } from '../../../src/core/contract.ts'

/** A queue on a clock that starts at 0, with commands short enough to read. */
class Desk {
  readonly state = emptyQueue()
  ms = 0

  claim(id: string, request: Partial<ClaimRequest> = {}): AnswerOf['claim'] {
    return this.run({ kind: 'claim', request: { ...usual, id, ...request } })
  }

  renew(
    id: string,
    { ttl = 100, patience = 100, tokens = 0 }: Partial<ClaimRequest> = {},
  ): AnswerOf['renew'] {
    return this.run({ kind: 'renew', request: { name: 'n', id, ttl, patience, tokens } })
  }

  release(id: string, next?: Partial<ClaimRequest>): AnswerOf['release'] {
    const request = next === undefined ? {} : { next: { ...usual, ...next } }
    return this.run({ kind: 'release', claim: { name: 'n', id }, ...request })
  }

  withdraw(id: string): AnswerOf['withdraw'] {
    return this.run({ kind: 'withdraw', claim: { name: 'n', id } })
  }

  private run<C extends QueueCommand>(command: C): AnswerOf[C['kind']] {
    return step(this.state, command, { ms: this.ms, micros: this.ms * 1000 }).answer
  }
}

const usual: ClaimRequest = {
  name: 'n',
  id: 'a.1',
  weight: 1,
  capacity: 1,
  ttl: 100,
  patience: 100,
  tokens: 1,
  whenBusy: 'queue',
  owner: 'test',
}

describe('a release that comes with the next claim', () => {
  it.each<[string, Partial<ClaimRequest>, string, (desk: Desk) => unknown]>([
    ['was withdrawn', {}, 'busy', (desk) => desk.withdraw('a.2')],
    ['is held already', {}, 'held', (desk) => desk.claim('a.2', { capacity: 2 })],
    ['has another capacity', { capacity: 3 }, 'mismatch', () => {}],
  ])('lets in who waits, also if that one %s', (_, more, answer, before) => {
    const desk = new Desk()
    const capacity = 2
    before(desk)
    for (const id of ['a.1', 'b.1', 'c.1', 'd.1']) desk.claim(id, { capacity })
    const [first = ''] = desk.state.waiters.keys()
    expect(desk.release('a.1', { id: 'a.2', capacity, ...more }).next).toMatchObject({ kind: answer })
    expect(desk.state.holders.get(first)).toBeDefined()
  })
})

describe('a waiter that was silent for longer than its patience', () => {
  it('does not keep a name at its capacity', () => {
    const desk = new Desk()
    desk.claim('a.1', { ttl: 10 })
    desk.claim('b.1', { patience: 10 })
    desk.ms = 50
    expect(desk.claim('c.1', { capacity: 2 })).toMatchObject({ kind: 'held' })
  })

  it('goes to the end of the queue when it claims again', () => {
    const desk = new Desk()
    desk.claim('a.1', { ttl: 1000 })
    desk.claim('b.1', { patience: 10 })
    desk.claim('c.1', { patience: 1000 })
    desk.ms = 50
    expect(desk.claim('b.1')).toEqual({ kind: 'queued', retryAfter: 950 })
    expect([...desk.state.waiters.keys()]).toEqual(['c.1', 'b.1'])
  })

  it('has nothing to release', () => {
    const desk = new Desk()
    desk.claim('a.1', { ttl: 1000 })
    desk.claim('b.1', { patience: 10 })
    desk.ms = 50
    expect(desk.release('b.1').released).toEqual({ kind: 'not-held' })
  })
})

describe('a waiter that renews with another ttl than it claimed with', () => {
  it('is granted for the ttl of the renewal, which is what it counts on', () => {
    const desk = new Desk()
    desk.claim('a.1', { ttl: 10 })
    desk.claim('b.1', { ttl: 20 })
    desk.ms = 10
    expect(desk.renew('b.1', { ttl: 500 })).toMatchObject({ kind: 'held' })
    desk.ms = 509
    expect(desk.claim('c.1', { whenBusy: 'try' })).toMatchObject({ kind: 'busy' })
    desk.ms = 510
    expect(desk.claim('c.1', { whenBusy: 'try' })).toMatchObject({ kind: 'held' })
  })

  it('has the patience of the renewal to pick a pushed grant up', () => {
    const desk = new Desk()
    desk.claim('a.1')
    desk.claim('b.1', { patience: 20 })
    desk.renew('b.1', { patience: 80 })
    desk.release('a.1')
    expect(desk.state.holders.get('b.1')?.expiresAt).toBe(80)
  })
})

describe('an unreachable session', () => {
  it('keeps its place, and is passed over by those who can be told', () => {
    const state = emptyQueue()
    const now = { ms: 0, micros: 0 }
    const reachable = (session: string): boolean => session !== 'b'
    const run = (command: QueueCommand): AnswerOf[QueueCommand['kind']] =>
      step(state, command, now, reachable).answer
    for (const id of ['a.1', 'b.1', 'c.1']) run({ kind: 'claim', request: { ...usual, id } })
    run({ kind: 'release', claim: { name: 'n', id: 'a.1' } })
    expect([...state.holders.values()].map(({ id }) => id)).toEqual(['c.1'])
    expect([...state.waiters.keys()]).toEqual(['b.1'])
    run({ kind: 'release', claim: { name: 'n', id: 'c.1' } })
    expect(
      run({ kind: 'renew', request: { name: 'n', id: 'b.1', ttl: 10, patience: 10, tokens: 0 } }),
    ).toMatchObject({
      kind: 'held',
    })
  })
})

describe('a name in use', () => {
  it('refuses claims with another capacity, and says which one counts', () => {
    const desk = new Desk()
    desk.claim('a.1', { capacity: 2 })
    expect(desk.claim('b.1', { capacity: 3 })).toEqual({ kind: 'mismatch', capacity: 2 })
    expect([desk.state.holders.size, desk.state.waiters.size]).toEqual([1, 0])
    desk.release('a.1')
    expect(desk.claim('b.1', { capacity: 3 })).toMatchObject({ kind: 'held' })
  })
})
