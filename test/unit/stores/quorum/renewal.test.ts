import { describe, expect, it } from 'vitest'

import type { Held as HeldAnswer, RenewRequest, Store } from '../../../../src/core/contract.ts'
import { quorumStore } from '../../../../src/stores/quorum/index.ts'
import { fails, failsAll, Held, never, request, TIMEOUT, TTL, world } from './kit.ts'
import type { Member, Steer, World } from './kit.ts'

const CLAIM = { name: 'x', id: 'a.1' }
const renewal = (tokens = 0, claim = CLAIM): RenewRequest => ({ ...claim, ttl: TTL, patience: 500, tokens })

const says =
  (kind: string): Steer =>
  (_call, requests) =>
    (requests as readonly unknown[]).map(() => ({ kind }))
/** What it would say, with something changed. */
const but =
  (change: object): Steer =>
  (call) =>
    (call() as readonly object[]).map((answer) => ({ ...answer, ...change }))

interface Holding extends World {
  readonly store: Store
  readonly token: bigint
  /** What each member says of the next renewal. */
  readonly extend: (...steers: readonly (Steer | undefined)[]) => void
  readonly renew: (tokens?: number) => Promise<unknown>
  readonly holders: () => (string | undefined)[]
}

/** A claim of one token that all members gave. */
async function holding(count: number): Promise<Holding> {
  const all = world(count)
  const store = quorumStore(all.stores, { setUp: 'now', clock: all.clock })
  const { token } = (await store.claim(request('x', 'a.1'), TIMEOUT)) as HeldAnswer
  return {
    ...all,
    store,
    token,
    extend(...steers) {
      all.members.forEach(({ on }, at) => {
        const steer = steers[at]
        if (steer === undefined) delete on.extend
        else on.extend = steer
      })
    },
    renew: async (tokens = 0) => (await store.renew([renewal(tokens)], TIMEOUT))[0],
    holders: () => all.members.map(({ votes }) => (votes.inspect('x') as { id?: string }).id),
  }
}

const forget = ({ votes }: Member): unknown => votes.release({ ...CLAIM, attempt: 0 }, false)
const attemptAt = ({ votes }: Member): number => (votes.inspect('x') as { attempt: number }).attempt
const extensions = ({ members }: World): number[] =>
  members.map(({ asked }) => asked.filter((what) => what === 'extend').length)

describe('a renewal', () => {
  it('is granted by a majority, whatever the others do', async () => {
    const lease = await holding(5)
    lease.extend(never, never)
    expect(await lease.renew()).toEqual({ kind: 'renewed', contended: false })
    lease.extend(says('lost'), failsAll)
    expect(await lease.renew()).toEqual({ kind: 'renewed', contended: false })
    lease.extend(says('fenced'), says('not-ready'))
    expect(await lease.renew()).toEqual({ kind: 'renewed', contended: false })
  })

  it('is asked for also while too many votes at once are late at all stores', async () => {
    const lease = await holding(3)
    for (const { on } of lease.members) on.vote = on.release = fails
    await lease.store.claim(request('y', 'a.2'), TIMEOUT)
    for (const { on } of lease.members) on.vote = never
    const asked = Array.from({ length: 100 }, (_, at) =>
      lease.store.claim(request(`y${at}`, `b.${at}`), TIMEOUT),
    )
    expect(asked).toHaveLength(100)
    expect(await lease.renew()).toEqual({ kind: 'renewed', contended: false })
  })

  it('counts for nothing where stores leave out what they do not find: which answer is whose, nobody can say', async () => {
    const lease = await holding(3)
    const other = { name: 'y', id: 'a.2' }
    await lease.store.claim(request('y', 'a.2'), TIMEOUT)
    lease.members.forEach(forget)
    const found: Steer = (call) =>
      (call() as readonly { kind: string }[]).filter(({ kind }) => kind === 'renewed')
    lease.extend(found, found, found)
    const answers = await lease.env.until(
      Promise.resolve(lease.store.renew([renewal(), renewal(0, other)], TIMEOUT)),
    )
    expect(answers).toMatchObject([{ kind: 'unknown' }, { kind: 'unknown' }])
  })

  it('lasts from then on at every store', async () => {
    const lease = await holding(3)
    await lease.env.advance(TTL - 1)
    expect(await lease.renew()).toMatchObject({ kind: 'renewed' })
    await lease.env.advance(TTL - 1)
    expect(lease.holders()).toEqual(['a.1', 'a.1', 'a.1'])
    await lease.env.advance(1)
    expect(lease.holders()).toEqual([undefined, undefined, undefined])
  })

  it.each(['lost', 'fenced', 'not-ready'])(
    'is lost when so many say "%s" that no majority is left',
    async (kind) => {
      const lease = await holding(5)
      // As soon as that is certain: the others need not answer.
      lease.extend(says(kind), says(kind), says(kind), never, never)
      expect(await lease.renew()).toEqual({ kind: 'lost' })
      // From then on it is nobody's: no store is asked to extend it again.
      lease.extend()
      for (const { on } of lease.members) on.inspect = () => ({ kind: 'free' })
      const before = extensions(lease)
      expect(await lease.renew()).toEqual({ kind: 'lost' })
      expect(extensions(lease)).toEqual(before)
    },
  )

  it('of what another client was granted is unknown, and lost when nobody has it', async () => {
    const lease = await holding(3)
    const other = quorumStore(lease.stores, { setUp: 'now', clock: lease.clock })
    expect(await other.renew([renewal()], TIMEOUT)).toMatchObject([{ kind: 'unknown' }])
    expect(await lease.renew()).toMatchObject({ kind: 'renewed' })
    await lease.store.release(CLAIM, undefined, TIMEOUT)
    expect(await other.renew([renewal()], TIMEOUT)).toEqual([{ kind: 'lost' }])
    for (const { on } of lease.members) on.inspect = fails
    expect(await other.renew([renewal()], TIMEOUT)).toMatchObject([{ kind: 'unknown' }])
  })

  it('of four is lost at two stores, and not at one', async () => {
    const lease = await holding(4)
    lease.extend(says('lost'))
    expect(await lease.renew()).toMatchObject({ kind: 'renewed' })
    lease.extend(says('lost'), says('lost'))
    expect(await lease.renew()).toEqual({ kind: 'lost' })
  })

  it('is unknown while those that do not answer could make it a majority, and can be tried again', async () => {
    const lease = await holding(5)
    lease.extend(failsAll, failsAll, failsAll)
    const answer = await lease.renew()
    expect(answer).toMatchObject({ kind: 'unknown', cause: { code: 'QUORUM_UNAVAILABLE', needed: 3 } })
    const { nodes } = (answer as { cause: { nodes: readonly { state: string }[] } }).cause
    expect(nodes.map(({ state }) => state)).toEqual([
      'no answer',
      'no answer',
      'no answer',
      'granted',
      'granted',
    ])
    lease.extend(failsAll, failsAll, says('lost'), says('lost'))
    expect(await lease.renew()).toMatchObject({ kind: 'unknown' })
    lease.extend()
    await lease.env.advance(1_000)
    expect(await lease.renew()).toEqual({ kind: 'renewed', contended: false })
  })

  it('is lost when those that do not answer could not make it a majority', async () => {
    const lease = await holding(5)
    for (const each of lease.members.slice(1, 4)) forget(each)
    lease.extend(says('lost'), says('free'), says('free'), says('free'), failsAll)
    expect(await lease.renew()).toEqual({ kind: 'lost' })
  })

  it('asks each store once for all claims, and decides each by itself', async () => {
    const lease = await holding(3)
    const other = { name: 'y', id: 'a.2' }
    await lease.store.claim(request('y', 'a.2'), TIMEOUT)
    for (const { votes } of lease.members.slice(0, 2)) votes.withdraw(CLAIM)
    const unheard = { name: 'z', id: 'a.3' }
    const asked = [renewal(0), renewal(0, unheard), renewal(0, other)]
    expect(await lease.store.renew(asked, TIMEOUT)).toEqual([
      { kind: 'lost' },
      { kind: 'lost' },
      { kind: 'renewed', contended: false },
    ])
    expect(extensions(lease)).toEqual([1, 1, 1])
  })

  it('that some stores answer for one claim only is unknown for both', async () => {
    const lease = await holding(3)
    await lease.store.claim(request('y', 'a.2'), TIMEOUT)
    const half: Steer = (call) => (call() as readonly unknown[]).slice(0, 1)
    lease.extend(half, half)
    const asked = [renewal(0), renewal(0, { name: 'y', id: 'a.2' })]
    expect(await lease.store.renew(asked, TIMEOUT)).toMatchObject([{ kind: 'unknown' }, { kind: 'unknown' }])
  })

  it('says that somebody waits if one of the stores says so in time', async () => {
    const lease = await holding(3)
    lease.extend(but({ contended: true }))
    expect(await lease.renew()).toEqual({ kind: 'renewed', contended: true })
    expect(await lease.renew(2)).toMatchObject({ kind: 'held', contended: true })
  })

  it('of nothing asks nobody', async () => {
    const lease = await holding(3)
    expect(await lease.store.renew([], TIMEOUT)).toEqual([])
    expect(extensions(lease)).toEqual([0, 0, 0])
  })
})

describe('a store that lost a lease', () => {
  it('has it again after a renewal that the others grant', async () => {
    const lease = await holding(5)
    lease.members.slice(0, 2).forEach(forget)
    expect(await lease.renew()).toMatchObject({ kind: 'renewed' })
    expect(lease.holders()).toEqual(Array(5).fill('a.1'))
  })

  it('has it again also if it says so when all is decided', async () => {
    const lease = await holding(3)
    const late = new Held()
    forget(lease.members[0] as Member)
    lease.extend(late.steer)
    expect(await lease.renew(2)).toMatchObject({ kind: 'held' })
    lease.extend()
    late.release()
    await lease.env.settle()
    expect(lease.holders()).toEqual(['a.1', 'a.1', 'a.1'])
    // It is asked to hold it, and not for tokens of its own.
    const tokens = lease.members.map(({ votes }) => (votes.inspect('x') as { token: bigint }).token)
    expect(new Set(tokens).size).toBe(1)
  })

  it('does not have it again if it was lost meanwhile', async () => {
    const lease = await holding(3)
    const late = new Held()
    forget(lease.members[0] as Member)
    lease.extend(late.steer, says('lost'), says('lost'))
    expect(await lease.renew()).toEqual({ kind: 'lost' })
    lease.extend()
    late.release()
    await lease.env.settle()
    expect(lease.holders()[0]).toBeUndefined()
  })

  it('counts if the lease needs it', async () => {
    const lease = await holding(3)
    lease.members.slice(0, 2).forEach(forget)
    expect(await lease.renew()).toEqual({ kind: 'renewed', contended: false })
    expect(lease.holders()).toEqual(['a.1', 'a.1', 'a.1'])
    lease.members.slice(1).forEach(forget)
    expect(await lease.renew(4)).toMatchObject({ kind: 'held', count: 4 })
    expect(lease.holders()).toEqual(['a.1', 'a.1', 'a.1'])
  })

  it('does not count where none has it any more', async () => {
    const lease = await holding(3)
    lease.members.forEach(forget)
    expect(await lease.renew()).toEqual({ kind: 'lost' })
    expect(lease.holders()).toEqual([undefined, undefined, undefined])
  })

  it('is not asked to take back what was released meanwhile', async () => {
    const lease = await holding(3)
    const kept = new Held()
    lease.extend(() => kept.steer(() => [{ kind: 'renewed', contended: false }]), says('free'), says('free'))
    const renewing = lease.renew()
    await lease.store.release(CLAIM, undefined, TIMEOUT)
    const asked = extensions(lease)
    kept.release()
    expect(await renewing).toEqual({ kind: 'lost' })
    await lease.env.settle()
    expect(extensions(lease)).toEqual(asked)
  })

  it('does not count if it does not take it back', async () => {
    const lease = await holding(3)
    lease.extend(says('free'), says('free'))
    expect(await lease.renew()).toEqual({ kind: 'lost' })
  })

  it('leaves it unknown if it falls silent then', async () => {
    const lease = await holding(3)
    lease.members.slice(0, 2).forEach(forget)
    let asked = 0
    const once: Steer = (call, requests) => (++asked > 2 ? failsAll(call, requests) : call()) as never
    lease.extend(once, once)
    expect(await lease.renew()).toMatchObject({ kind: 'unknown', cause: { code: 'QUORUM_UNAVAILABLE' } })
  })
})

describe('tokens of a renewal', () => {
  it('are a block above all before, and the same at every store', async () => {
    const lease = await holding(3)
    const first = (await lease.renew(8)) as HeldAnswer
    expect(first).toMatchObject({ kind: 'held', count: 8, contended: false })
    expect(first.token).toBeGreaterThan(lease.token)
    const second = (await lease.renew(2)) as HeldAnswer
    expect(second.token).toBeGreaterThanOrEqual(first.token + 8n)
    await lease.store.release(CLAIM, undefined, TIMEOUT)
    const next = (await lease.store.claim(request('x', 'b.1'), TIMEOUT)) as HeldAnswer
    expect(next.token).toBeGreaterThanOrEqual(second.token + 2n)
  })

  it('are the highest that was proposed, which the others accept', async () => {
    const lease = await holding(3)
    const [first] = lease.members as [Member]
    const ahead = { base: lease.token, token: lease.token + 50n, count: 1 }
    expect(first.votes.confirm({ ...CLAIM, attempt: attemptAt(first), ...ahead })).toEqual({
      kind: 'confirmed',
    })
    const answer = (await lease.renew(3)) as HeldAnswer
    expect(answer.token).toBeGreaterThan(ahead.token)
    const shown = (await lease.store.inspect('x', TIMEOUT)) as { holders: readonly { token: bigint }[] }
    expect(shown.holders[0]?.token).toBe(answer.token)
    const next = (await lease.renew(1)) as HeldAnswer
    expect(next.token).toBeGreaterThanOrEqual(answer.token + 3n)
  })

  it('are waited for while the stores agree on them, also when all have answered', async () => {
    const lease = await holding(3)
    const confirms = new Held()
    for (const { on } of lease.members) on.confirm = confirms.steer
    const [first] = lease.members as [Member]
    const ahead = { base: lease.token, token: lease.token + 50n, count: 1 }
    first.votes.confirm({ ...CLAIM, attempt: attemptAt(first), ...ahead })
    let answer: unknown = null
    const renewing = lease.renew(3).then((heard) => (answer = heard))
    await lease.env.settle()
    expect(answer).toBeNull()
    expect(confirms.count).toBe(2)
    for (let at = 0; at < 2; at++) confirms.release()
    await renewing
    expect(answer).toMatchObject({ kind: 'held', count: 3 })
  })

  it('are none where the stores cannot agree: the time is extended all the same', async () => {
    const lease = await holding(3)
    for (const { on } of lease.members) on.confirm = () => ({ kind: 'lost' })
    lease.extend((call) =>
      (call() as readonly HeldAnswer[]).map((answer) => ({ ...answer, token: answer.token + 9n })),
    )
    expect(await lease.renew(3)).toEqual({ kind: 'renewed', contended: false })
    for (const { on } of lease.members) delete on.confirm
    lease.extend(but({ kind: 'renewed' }), but({ kind: 'renewed' }), never)
    expect(await lease.renew(3)).toEqual({ kind: 'renewed', contended: false })
    lease.extend()
    await lease.env.advance(TTL - 1)
    expect(await lease.renew(3)).toMatchObject({ kind: 'held', count: 3 })
  })

  it.each<[string, Steer]>([
    ['lost it', says('lost')],
    ['is fenced', says('fenced')],
    ['is not ready', says('not-ready')],
    ['is silent', failsAll],
    ['gives no tokens', but({ kind: 'renewed' })],
  ])('are none where two cannot agree and the third %s', async (_, third) => {
    const lease = await holding(3)
    for (const { on } of lease.members) on.confirm = () => ({ kind: 'lost' })
    const ahead: Steer = (call) =>
      (call() as readonly HeldAnswer[]).map((answer) => ({ ...answer, token: answer.token + 9n }))
    lease.extend(ahead, undefined, third)
    let answer: unknown = null
    lease
      .renew(3)
      .then((heard) => (answer = heard))
      .catch(() => {})
    await lease.env.settle()
    expect(answer).toEqual({ kind: 'renewed', contended: false })
  })

  it('need a majority that proposes', async () => {
    const lease = await holding(5)
    lease.extend(never, never)
    expect(await lease.renew(2)).toMatchObject({ kind: 'held', count: 2 })
    lease.extend(failsAll, failsAll, failsAll)
    expect(await lease.renew(2)).toMatchObject({ kind: 'unknown' })
    lease.extend(says('lost'), says('lost'), says('lost'))
    expect(await lease.renew(2)).toEqual({ kind: 'lost' })
  })
})

describe('a claim that was left to run out', () => {
  it('is forgotten in time, one that is renewed is not', async () => {
    const lease = await holding(3)
    await lease.store.claim(request('y', 'a.2'), TIMEOUT)
    await lease.env.advance(TTL - 1)
    await lease.store.renew([renewal(0, { name: 'y', id: 'a.2' })], TIMEOUT)
    await lease.env.advance(TTL + 2)
    // The next thousand or two make it look at what it has.
    for (let i = 0; i < 2_100; i++)
      await lease.store.claim(request(`n ${i}`, `b.${i}`, { ttl: 100 }), TIMEOUT)
    const before = extensions(lease)
    expect(await lease.renew()).toEqual({ kind: 'lost' })
    expect(extensions(lease)).toEqual(before)
    await lease.store.renew([renewal(0, { name: 'y', id: 'a.2' })], TIMEOUT)
    expect(extensions(lease)).not.toEqual(before)
  })
})
