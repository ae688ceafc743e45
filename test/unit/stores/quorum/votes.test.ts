import { describe, expect, it } from 'vitest'

import type {
  Held as HeldAnswer,
  Store,
  Unknown,
  VoteAnswer,
  VoteRequest,
} from '../../../../src/core/contract.ts'
import { memoryNode, memoryStore } from '../../../../src/stores/memory/index.ts'
import { quorumStore } from '../../../../src/stores/quorum/index.ts'
import { fails, Held, heardOnly, never, request, SILENT, TIMEOUT, TTL, world } from './kit.ts'
import type { Member, Steer, World } from './kit.ts'

const CLAIM = { name: 'x', id: 'a.1' }

function open(count: number): World & { readonly store: Store } {
  const all = world(count)
  return { ...all, store: quorumStore(all.stores, { setUp: 'now', clock: all.clock }) }
}

const alone = ({ votes }: Member, id: string, ttl = TTL, more = {}): unknown =>
  votes.vote({ ...request('x', id, { ttl }), attempt: 1, probation: 0, interest: false, ...more })
const holders = ({ members }: World): (string | undefined)[] =>
  members.map(({ votes }) => (votes.inspect('x') as { id?: string }).id)
const statesOf = (answer: unknown): string[] =>
  (answer as { cause: { nodes: readonly { state: string }[] } }).cause.nodes.map(({ state }) => state)

describe('a claim', () => {
  it('is held when a majority has granted it, whatever the others do', async () => {
    const all = open(5)
    const [a, b] = all.members as [Member, Member]
    a.on.vote = never
    b.on.vote = heardOnly
    expect(await all.store.claim(request('x', 'a.1'), TIMEOUT)).toMatchObject({
      kind: 'held',
      contended: false,
    })
    expect(holders(all)).toEqual([undefined, 'a.1', 'a.1', 'a.1', 'a.1'])
  })

  it('is busy when so many have refused it that no majority is left, and what was given is given back', async () => {
    const all = open(5)
    all.members.slice(0, 3).forEach((each) => alone(each, 'o.1'))
    const [, , , d, e] = all.members as [Member, Member, Member, Member, Member]
    const late = new Held()
    e.on.vote = late.steer
    expect(await all.store.claim(request('x', 'a.1'), TIMEOUT)).toMatchObject({ kind: 'busy' })
    expect(d.asked).toContain('release')
    // That one votes when nobody counts any more.
    late.release()
    await all.env.settle()
    expect(holders(all)).toEqual(['o.1', 'o.1', 'o.1', undefined, undefined])
  })

  it('that is split between two is given back by both', async () => {
    const all = open(4)
    all.members.slice(0, 2).forEach((each) => alone(each, 'o.1'))
    expect(await all.store.claim(request('x', 'a.1'), TIMEOUT)).toMatchObject({ kind: 'busy' })
    expect(holders(all)).toEqual(['o.1', 'o.1', undefined, undefined])
  })

  it('keeps a vote that comes after it is held', async () => {
    const all = open(3)
    const late = new Held()
    const [a] = all.members as [Member]
    a.on.vote = late.steer
    const { token } = (await all.store.claim(request('x', 'a.1'), TIMEOUT)) as HeldAnswer
    late.release()
    await all.env.settle()
    expect(holders(all)).toEqual(['a.1', 'a.1', 'a.1'])
    expect(await all.store.inspect('x', TIMEOUT)).toMatchObject({ holders: [{ token }] })
  })

  it.each([
    ['all are taken', [1_000, 3_000, 2_000, 5_000, 4_000], 3_000],
    ['two are free', [0, 3_000, 2_000, 0, 4_000], 2_000],
  ])('says when it may be worth another try: %s', async (_, ends, retryAfter) => {
    const all = open(5)
    ends.forEach((ttl, at) => ttl > 0 && alone(all.members[at] as Member, `o.${at}`, ttl))
    expect(await all.store.claim(request('x', 'a.1'), TIMEOUT)).toEqual({ kind: 'busy', retryAfter })
  })

  it('says nothing of another try where too few say when', async () => {
    const all = open(3)
    for (const { on } of all.members) on.vote = () => ({ kind: 'busy' })
    expect(await all.store.claim(request('x', 'a.1'), TIMEOUT)).toEqual({ kind: 'busy' })
  })

  it('is unknown while too few can vote, and says so of each', async () => {
    const all = open(5)
    const [a, b, c, d] = all.members as [Member, Member, Member, Member]
    a.on.vote = fails
    b.on.vote = fails
    c.on.vote = () => ({ kind: 'not-ready', readyIn: 1_500 })
    alone(d, 'o.1')
    const answer = await all.store.claim(request('x', 'a.1'), TIMEOUT)
    expect(answer).toMatchObject({ kind: 'unknown', cause: { code: 'QUORUM_UNAVAILABLE', needed: 3 } })
    expect(statesOf(answer).slice(0, 3)).toEqual(['no answer', 'no answer', 'not ready'])
    expect(((answer as Unknown).cause as Error).message).toMatch(
      /^At most 2 of 5 stores can vote, and 3 have to agree\. .*it is silent; .*votes again in 2 s$/,
    )
    // Whoever did not answer may have granted it, so it is told too.
    expect([a, b].map(({ asked }) => asked.includes('release'))).toEqual([true, true])
    expect(c.asked).not.toContain('release')
    expect(holders(all)[4]).toBeUndefined()
  })

  it('is busy, and not unknown, if a majority says so while others are silent', async () => {
    const all = open(5)
    const [a, b, ...rest] = all.members as [Member, Member, Member, Member, Member]
    a.on.vote = fails
    b.on.vote = () => {
      throw new Error('it throws')
    }
    rest.forEach((each) => alone(each, 'o.1'))
    expect(await all.store.claim(request('x', 'a.1'), TIMEOUT)).toMatchObject({ kind: 'busy' })
  })

  it('has the highest token that the first majority proposed, which the others accept', async () => {
    const all = open(3)
    const [a] = all.members as [Member]
    // It has given a hundred tokens that the others know nothing of.
    const { token: last } = alone(a, 'o.1', TTL, { tokens: 100 }) as { token: bigint }
    a.votes.release({ name: 'x', id: 'o.1', attempt: 1 }, false)
    const answer = (await all.store.claim(request('x', 'a.1', { tokens: 5 }), TIMEOUT)) as HeldAnswer
    expect(answer.token).toBeGreaterThanOrEqual(last + 100n)
    expect(answer.count).toBe(5)
    expect(await all.store.inspect('x', TIMEOUT)).toMatchObject({ holders: [{ token: answer.token }] })
    await all.store.release(CLAIM, undefined, TIMEOUT)
    const next = (await all.store.claim(request('x', 'b.1'), TIMEOUT)) as HeldAnswer
    expect(next.token).toBeGreaterThanOrEqual(answer.token + 5n)
  })

  it('asks nobody to accept the token who votes when it is held', async () => {
    const all = open(3)
    const late = new Held()
    const [, , c] = all.members as [Member, Member, Member]
    c.on.vote = (call) =>
      late.steer(() => {
        const given = call() as HeldAnswer
        return { ...given, token: given.token - 1n }
      })
    expect((await all.store.claim(request('x', 'a.1'), TIMEOUT)).kind).toBe('held')
    late.release()
    await all.env.settle()
    expect(c.asked).toContain('vote')
    expect(c.asked).not.toContain('confirm')
  })

  it('is not held where the others do not accept the token', async () => {
    const all = open(3)
    const [a, b, c] = all.members as [Member, Member, Member]
    alone(a, 'o.1', TTL, { tokens: 100 })
    a.votes.release({ name: 'x', id: 'o.1', attempt: 1 }, false)
    for (const { on } of [b, c]) on.confirm = () => ({ kind: 'lost' })
    expect((await all.store.claim(request('x', 'a.1'), TIMEOUT)).kind).not.toBe('held')
    await all.env.settle()
    expect(holders(all)).toEqual([undefined, undefined, undefined])
    // Nor where they do not answer, for nobody knows.
    for (const { on } of [b, c]) on.confirm = fails
    expect((await all.store.claim(request('x', 'a.2'), TIMEOUT)).kind).not.toBe('held')
    // One of them is enough.
    delete c.on.confirm
    await all.env.advance(2_000)
    expect((await all.store.claim(request('x', 'a.3'), TIMEOUT)).kind).toBe('held')
  })

  it('that is sent again while it is held keeps its token, and is renewed', async () => {
    const all = open(3)
    const first = (await all.store.claim(request('x', 'a.1', { tokens: 4 }), TIMEOUT)) as HeldAnswer
    await all.env.advance(TTL - 1)
    expect(await all.store.claim(request('x', 'a.1', { tokens: 4 }), TIMEOUT)).toEqual(first)
    await all.env.advance(TTL - 1)
    expect(holders(all)).toEqual(['a.1', 'a.1', 'a.1'])
    for (const { on } of all.members)
      on.extend = (call) => (call() as readonly object[]).map((answer) => ({ ...answer, contended: true }))
    expect(await all.store.claim(request('x', 'a.1'), TIMEOUT)).toMatchObject({
      token: first.token,
      contended: true,
    })
  })

  it('that is sent again when it is lost is voted on anew', async () => {
    const all = open(3)
    const first = (await all.store.claim(request('x', 'a.1'), TIMEOUT)) as HeldAnswer
    await all.env.advance(TTL + 1)
    const second = (await all.store.claim(request('x', 'a.1'), TIMEOUT)) as HeldAnswer
    expect(second.kind).toBe('held')
    expect(second.token).toBeGreaterThan(first.token)
  })

  it.each(['sent again', 'renewed'])(
    'that a majority has lost when it is %s stays where it is left',
    async (how) => {
      const all = open(3)
      await all.store.claim(request('x', 'a.1'), TIMEOUT)
      // The answer that it is lost may not be heard: until its end the store that has it keeps others out.
      for (const { on } of all.members.slice(1)) {
        on.extend = (_call, requests) => (requests as readonly unknown[]).map(() => ({ kind: 'lost' }))
        on.vote = () => ({ kind: 'not-ready', readyIn: 1 })
      }
      const renewal = { ...CLAIM, ttl: TTL, patience: 500, tokens: 0 }
      if (how === 'renewed') await all.store.renew([renewal], TIMEOUT)
      expect((await all.store.claim(request('x', 'a.1'), TIMEOUT)).kind).not.toBe('held')
      await all.env.settle()
      expect(holders(all)[0]).toBe('a.1')
    },
  )

  it('that is sent again while nobody answers is unknown, and still its own', async () => {
    const all = open(3)
    const first = (await all.store.claim(request('x', 'a.1'), TIMEOUT)) as HeldAnswer
    for (const { on } of all.members) on.extend = fails
    expect((await all.store.claim(request('x', 'a.1'), TIMEOUT)).kind).toBe('unknown')
    for (const { on } of all.members) delete on.extend
    expect(await all.store.claim(request('x', 'a.1'), TIMEOUT)).toMatchObject({
      kind: 'held',
      token: first.token,
    })
  })

  it('says that others wait if one of the stores does', async () => {
    const all = open(3)
    const [a, b] = all.members as [Member, Member]
    b.on.vote = (call) => ({ ...(call() as object), contended: true })
    expect(await all.store.claim(request('x', 'a.1'), TIMEOUT)).toMatchObject({
      kind: 'held',
      contended: true,
    })
    expect(a.asked).toContain('vote')
  })
})

describe('a release', () => {
  it('is done when a majority has let go, and tells how many had', async () => {
    const all = open(5)
    await all.store.claim(request('x', 'a.1'), TIMEOUT)
    for (const { on } of all.members.slice(0, 2)) on.release = never
    const answer = await all.store.release(CLAIM, undefined, TIMEOUT)
    expect(answer).toEqual({ released: { kind: 'released', confirmed: 3, of: 5 } })
    expect(all.members.every(({ asked }) => asked.includes('release'))).toBe(true)
  })

  it('is none where nobody had it', async () => {
    const all = open(3)
    expect(await all.store.release(CLAIM, undefined, TIMEOUT)).toEqual({ released: { kind: 'not-held' } })
  })

  it('is none where a majority did not have it any more: somebody else may have been granted it since', async () => {
    const all = open(3)
    await all.store.claim(request('x', 'a.1'), TIMEOUT)
    for (const { votes } of all.members.slice(1)) votes.release({ ...CLAIM, attempt: 0 }, false)
    const answer = await all.store.release(CLAIM, undefined, TIMEOUT)
    expect(answer).toEqual({ released: { kind: 'not-held' } })
  })

  it('is one where a majority may have had it', async () => {
    const all = open(3)
    await all.store.claim(request('x', 'a.1'), TIMEOUT)
    const [, second, third] = all.members as [Member, Member, Member]
    second.votes.release({ ...CLAIM, attempt: 0 }, false)
    third.on.release = fails
    const answer = await all.store.release(CLAIM, undefined, TIMEOUT)
    expect(answer).toEqual({ released: { kind: 'released', confirmed: 1, of: 3 } })
  })

  it('is unknown where less than a majority answers, and every store is told all the same', async () => {
    const all = open(5)
    await all.store.claim(request('x', 'a.1'), TIMEOUT)
    for (const { on } of all.members.slice(0, 3)) on.release = fails
    const { released } = await all.store.release(CLAIM, undefined, TIMEOUT)
    expect(released).toMatchObject({ kind: 'unknown', cause: { code: 'QUORUM_UNAVAILABLE', needed: 3 } })
    expect(statesOf(released).slice(0, 3)).toEqual(['no answer', 'no answer', 'no answer'])
    // Those are not well, and still hear of the next one.
    const told = all.members.map(({ asked }) => asked.length)
    await all.store.release(CLAIM, undefined, TIMEOUT)
    expect(all.members.map(({ asked }) => asked.length)).toEqual(told.map((count) => count + 1))
  })

  it('of a claim that another one holds waits for every store', async () => {
    const all = open(3)
    await all.store.claim(request('x', 'a.1'), TIMEOUT)
    const other = quorumStore(all.stores, { setUp: 'now', clock: all.clock })
    const late = new Held()
    const [a] = all.members as [Member]
    a.on.release = late.steer
    let over = false
    const answer = Promise.resolve(other.release(CLAIM, undefined, TIMEOUT)).finally(() => (over = true))
    await all.env.settle()
    expect(over).toBe(false)
    late.release()
    expect(await answer).toMatchObject({ released: { confirmed: 3 } })
    expect(holders(all)).toEqual([undefined, undefined, undefined])
  })

  it('can come with the next claim', async () => {
    const all = open(3)
    await all.store.claim(request('x', 'a.1'), TIMEOUT)
    const answer = await all.store.release(CLAIM, request('x', 'a.2'), TIMEOUT)
    expect(answer).toMatchObject({ released: { kind: 'released' }, next: { kind: 'held' } })
    expect(holders(all)).toEqual(['a.2', 'a.2', 'a.2'])
  })

  it('ends what the claim had: it cannot be renewed', async () => {
    const all = open(3)
    await all.store.claim(request('x', 'a.1'), TIMEOUT)
    await all.store.release(CLAIM, undefined, TIMEOUT)
    expect(await all.store.renew([{ ...CLAIM, ttl: TTL, patience: 500, tokens: 0 }], TIMEOUT)).toEqual([
      { kind: 'lost' },
    ])
    expect(all.members.flatMap(({ asked }) => asked)).not.toContain('extend')
  })
})

describe('a withdrawal', () => {
  it('takes the claim away, and lets no late copy of it in', async () => {
    const all = open(3)
    await all.store.claim(request('x', 'a.1'), TIMEOUT)
    expect(await all.store.withdraw(CLAIM, TIMEOUT)).toMatchObject({ kind: 'released', of: 3 })
    expect(holders(all)).toEqual([undefined, undefined, undefined])
    expect(await all.store.renew([{ ...CLAIM, ttl: TTL, patience: 500, tokens: 0 }], TIMEOUT)).toEqual([
      { kind: 'lost' },
    ])
    expect((await all.store.claim(request('x', 'a.1'), TIMEOUT)).kind).toBe('busy')
    expect(await all.store.withdraw({ name: 'x', id: 'a.9' }, TIMEOUT)).toEqual({ kind: 'not-held' })
  })
})

describe('which servers vote', () => {
  const named = (servers: readonly string[]): World & { readonly store: Store } => {
    const all = open(servers.length)
    servers.forEach((server, at) => {
      const { on } = all.members[at] as Member
      on.identify = () => ({ kind: 'node', server, readyIn: 0 })
    })
    return all
  }

  it('is refused for good if two of them are one', async () => {
    const { store, members } = named(['a', 'b', 'a'])
    const answer = await store.claim(request('x', 'a.1'), TIMEOUT)
    expect(answer).toMatchObject({ kind: 'unknown', retryable: false, cause: { code: 'INVALID_ARGUMENT' } })
    expect(((answer as Unknown).cause as Error).message).toMatch(/memory 1 and memory 3 are one server/)
    expect(members.flatMap(({ asked }) => asked)).not.toContain('vote')
    expect(await store.claim(request('x', 'a.2'), TIMEOUT)).toMatchObject({
      kind: 'unknown',
      retryable: false,
    })
  })

  it('need not be known of all: those that do not say look on until they do', async () => {
    const all = open(3)
    const [a] = all.members as [Member]
    a.on.identify = fails
    expect((await all.store.claim(request('x', 'a.1'), TIMEOUT)).kind).toBe('held')
    expect(a.asked).not.toContain('vote')
    await all.store.release(CLAIM, undefined, TIMEOUT)
    delete a.on.identify
    await all.env.advance(2_000)
    expect((await all.store.claim(request('x', 'a.2'), TIMEOUT)).kind).toBe('held')
    await all.store.release({ name: 'x', id: 'a.2' }, undefined, TIMEOUT)
    expect((await all.store.claim(request('x', 'a.3'), TIMEOUT)).kind).toBe('held')
    expect(a.asked).toContain('vote')
  })

  it('is waited for by who comes first, until a majority has said so', async () => {
    const all = open(3)
    const [a, b, c] = all.members as [Member, Member, Member]
    const held = [new Held(), new Held(), new Held()] as const
    ;[a, b, c].forEach(({ on }, at) => void (on.identify = held[at]?.steer as Held['steer']))
    const answers = ['a.1', 'b.1'].map((id) => Promise.resolve(all.store.claim(request(id, id), TIMEOUT)))
    let done = 0
    for (const answer of answers) answer.then(() => done++).catch(() => {})
    await all.env.settle()
    held[0].release()
    await all.env.settle()
    expect(done).toBe(0)
    held[1].release()
    await all.env.settle()
    expect(done).toBe(2)
    expect((await Promise.all(answers)).map(({ kind }) => kind)).toEqual(['held', 'held'])
    expect(c.asked).toEqual(['identify'])
    held[2].release()
    await all.env.settle()
    expect((await all.store.claim(request('z', 'a.3'), TIMEOUT)).kind).toBe('held')
    expect(c.asked).toEqual(['identify', 'vote'])
  })

  it('is asked of one whose address leads elsewhere as soon as it can be reached, also if it was not well', async () => {
    const all = world(3)
    const [a] = all.members as [Member]
    let moved: (reachable: boolean) => void = () => {}
    Object.assign(a.votes, { onMove: (listener: typeof moved) => void (moved = listener) })
    const store = quorumStore(all.stores, { setUp: 'now', clock: all.clock })
    await store.claim(request('x', 'a.1'), TIMEOUT)
    a.on.vote = fails
    await store.claim(request('y', 'a.2'), TIMEOUT)
    a.asked.length = 0
    moved(false)
    expect(a.asked).toEqual([])
    moved(true)
    expect(a.asked).toEqual(['identify'])
  })

  it('is unknown, and asked again, while no majority says', async () => {
    const all = open(3)
    for (const { on } of all.members.slice(0, 2)) on.identify = fails
    const answer = await all.store.claim(request('x', 'a.1'), TIMEOUT)
    expect(answer).toMatchObject({ kind: 'unknown', cause: { code: 'QUORUM_UNAVAILABLE' } })
    for (const { on } of all.members) delete on.identify
    expect((await all.store.claim(request('x', 'a.2'), TIMEOUT)).kind).toBe('held')
  })
})

describe('a store that tells its answers instead of promising them', () => {
  /** As a store on a connection does it. */
  function direct(all: World): {
    readonly store: Store
    readonly asked: string[]
    answer: VoteAnswer | null
  } {
    const state = { asked: [] as string[], answer: null as VoteAnswer | null }
    const [first, ...others] = all.members as [Member, Member, Member]
    const votes = Object.assign(Object.create(first.votes) as object, {
      voteThen(vote: VoteRequest, _timeout: number, heard: (answer: VoteAnswer) => void) {
        state.asked.push('vote')
        heard(state.answer ?? first.votes.vote(vote))
      },
      releaseThen(...[ref, tell, , heard]: [never, boolean, number, (answer: unknown) => void]) {
        state.asked.push('release')
        heard(state.answer ?? first.votes.release(ref, tell))
      },
    })
    const store = quorumStore(
      [Object.assign(memoryStore(), { votes }) as unknown as Store, ...others.map((each) => each.store)],
      { setUp: 'now', clock: all.clock },
    )
    return Object.assign(state, { store })
  }

  it('votes and releases like any other', async () => {
    const all = world(3)
    const one = direct(all)
    expect((await one.store.claim(request('x', 'a.1'), TIMEOUT)).kind).toBe('held')
    expect(await one.store.release(CLAIM, undefined, TIMEOUT)).toMatchObject({ released: { confirmed: 2 } })
    expect(one.asked).toEqual(['vote', 'release'])
    expect((all.members[0] as Member).votes.inspect('x')).toEqual({ kind: 'free' })
  })

  it('is left alone for a while when it does not answer, but for releases', async () => {
    const all = world(3)
    const one = direct(all)
    one.answer = SILENT
    for (let at = 0; at < 5; at++) {
      expect((await one.store.claim(request(`${at}`, `a.${at}`), TIMEOUT)).kind).toBe('held')
    }
    expect(one.asked).toEqual(['vote'])
    await one.store.release({ name: '0', id: 'a.0' }, undefined, TIMEOUT)
    expect(one.asked).toEqual(['vote', 'release'])
    one.answer = null
    await all.env.advance(1_000)
    for (const id of ['b.1', 'b.2']) await one.store.claim(request(id, id), TIMEOUT)
    expect(one.asked).toEqual(['vote', 'release', 'vote', 'vote'])
  })
})

describe('a store that does not answer', () => {
  it('is asked although it is not well where no majority is', async () => {
    const all = open(3)
    await all.store.claim(request('w', 'a.0'), TIMEOUT)
    const [a, b] = all.members as [Member, Member]
    a.on.vote = fails
    b.on.vote = fails
    await all.store.claim(request('x', 'a.1'), TIMEOUT)
    const before = a.asked.length
    delete a.on.vote
    expect((await all.store.claim(request('x', 'a.2'), TIMEOUT)).kind).toBe('held')
    expect(a.asked.length).toBeGreaterThan(before)
  })

  it('gets so many requests at the most, and no queue grows before it', async () => {
    const all = open(3)
    const [a] = all.members as [Member]
    await all.store.claim(request('x', 'a.1'), TIMEOUT)
    a.on.release = fails
    await all.store.release(CLAIM, undefined, TIMEOUT)
    a.asked.length = 0
    a.on.release = never
    for (let at = 0; at < 200; at++) await all.store.claim(request(`${at}`, `b.${at}`), TIMEOUT)
    for (let at = 0; at < 200; at++)
      await all.store.release({ name: `${at}`, id: `b.${at}` }, undefined, TIMEOUT)
    expect(a.asked.filter((what) => what === 'release').length).toBeLessThanOrEqual(64)
    expect(a.asked.filter((what) => what === 'release').length).toBeGreaterThan(32)
  })

  it('is told of everything that was released meanwhile as soon as it answers, however much that is', async () => {
    const all = open(3)
    const [a] = all.members as [Member]
    const names = Array.from({ length: 200 }, (_, at) => `${at}`)
    for (const name of names) await all.store.claim(request(name, `b.${name}`), TIMEOUT)
    a.on.vote = fails
    await all.store.claim(request('slow', 'a.1'), TIMEOUT)
    const answers: ((kind: { kind: 'released' }) => void)[] = []
    a.on.release = (call) => {
      call()
      return new Promise((resolve) => answers.push(resolve))
    }
    for (const name of names) await all.store.release({ name, id: `b.${name}` }, undefined, TIMEOUT)
    expect(answers.length).toBeLessThanOrEqual(64)
    answers[0]?.({ kind: 'released' })
    await all.env.advance(1)
    expect(names.filter((name) => 'id' in a.votes.inspect(name))).toEqual([])
  })

  it.each<[string, Steer]>([
    ['said so', fails],
    ['said so later', async () => SILENT],
    [
      'threw',
      () => {
        throw new Error('it is broken')
      },
    ],
    ['failed', () => Promise.reject(new Error('it is gone'))],
  ])('and %s is well again as soon as it answers, and its pauses begin anew', async (_, silent) => {
    const all = open(3)
    await all.store.claim(request('w', 'a.0'), TIMEOUT)
    const [a] = all.members as [Member]
    const tries = async (): Promise<number> => {
      const before = a.asked.length
      await all.store.claim(request(`${all.env.mono()}`, `n.${all.env.mono()}`), TIMEOUT)
      await all.env.advance(1)
      return a.asked.length - before
    }
    a.on.vote = silent
    for (let at = 0; at < 500; at++) await tries()
    delete a.on.vote
    await all.env.advance(1_000)
    await tries()
    expect(await tries()).toBe(1)
    a.on.vote = silent
    await tries()
    expect(await tries()).toBe(0)
    await all.env.advance(25)
    expect(await tries()).toBe(1)
  })
})

describe('stores without votes', () => {
  const ordinary = () => [memoryStore(), memoryStore(), memoryStore()] as const

  it('exclude each other’s clients, renew, and give tokens that grow', async () => {
    const stores = ordinary()
    const [a, b] = [quorumStore(stores, { setUp: 'now' }), quorumStore(stores, { setUp: 'now' })]
    const first = (await a.claim(request('x', 'a.1', { tokens: 3 }), TIMEOUT)) as HeldAnswer
    expect(first).toMatchObject({ kind: 'held', count: 3 })
    expect((await b.claim(request('x', 'b.1'), TIMEOUT)).kind).toBe('busy')
    const again = { ...CLAIM, ttl: TTL, patience: 500 }
    expect(await a.renew([{ ...again, tokens: 0 }], TIMEOUT)).toEqual([{ kind: 'renewed', contended: false }])
    const [more] = (await a.renew([{ ...again, tokens: 2 }], TIMEOUT)) as [HeldAnswer]
    expect(more).toMatchObject({ kind: 'held', count: 2 })
    expect(more.token).toBeGreaterThanOrEqual(first.token + 3n)
    expect(await a.inspect('x', TIMEOUT)).toMatchObject({ holders: [{ id: 'a.1', owner: 'test' }] })
    expect(await a.release(CLAIM, undefined, TIMEOUT)).toMatchObject({
      released: { kind: 'released', of: 3 },
    })
    expect((await b.claim(request('x', 'b.2'), TIMEOUT)).kind).toBe('held')
    expect(await a.release(CLAIM, undefined, TIMEOUT)).toEqual({ released: { kind: 'not-held' } })
  })

  it('let somebody else take a claim away, and only that one', async () => {
    const stores = ordinary()
    const [a, b] = [quorumStore(stores, { setUp: 'now' }), quorumStore(stores, { setUp: 'now' })]
    await a.claim(request('x', 'a.1'), TIMEOUT)
    expect(await b.release({ name: 'x', id: 'o.1' }, undefined, TIMEOUT)).toEqual({
      released: { kind: 'not-held' },
    })
    expect(await b.inspect('x', TIMEOUT)).toMatchObject({ holders: [{ id: 'a.1' }] })
    expect(await b.release(CLAIM, undefined, TIMEOUT)).toMatchObject({ released: { confirmed: 3 } })
    expect(await b.inspect('x', TIMEOUT)).toMatchObject({ holders: [] })
    await a.claim(request('y', 'a.2'), TIMEOUT)
    expect(await b.withdraw({ name: 'y', id: 'o.1' }, TIMEOUT)).toEqual({ kind: 'not-held' })
    expect(await b.withdraw({ name: 'y', id: 'a.2' }, TIMEOUT)).toMatchObject({
      kind: 'released',
      confirmed: 2,
    })
    expect(await b.inspect('y', TIMEOUT)).toMatchObject({ holders: [] })
  })

  it('list all of their names, however many pages that takes', async () => {
    const stores = ordinary()
    const store = quorumStore(stores, { setUp: 'now' })
    for (let at = 0; at < 1_001; at++) await store.claim(request(`n ${at}`, `a.${at}`), TIMEOUT)
    await store.claim(request('other', 'a.o'), TIMEOUT)
    const page = (await store.list({ prefix: 'n ', limit: 2_000 }, TIMEOUT)) as { names: readonly string[] }
    expect(page.names).toHaveLength(1_001)
  })

  it('may have been asked for another capacity: that is busy', async () => {
    const stores = ordinary()
    for (const each of stores) await each.claim(request('x', 'o.1', { capacity: 2 }), TIMEOUT)
    const store = quorumStore(stores, { setUp: 'now' })
    expect(await store.claim(request('x', 'a.1'), TIMEOUT)).toEqual({ kind: 'busy' })
  })

  it('hear nothing of each other, and their tokens are weak', async () => {
    const store = quorumStore([...ordinary(), memoryNode()], { setUp: 'now' })
    expect(store.capabilities).toMatchObject({ fencing: 'weak', wakeups: 'poll', queue: false })
    expect(await store.watch('a', () => {}, TIMEOUT)).toMatchObject({ kind: 'watching' })
    expect(quorumStore([memoryNode(), memoryNode()]).capabilities).toMatchObject({
      fencing: 'monotonic',
      wakeups: 'push',
    })
  })
})

describe('a claim that is asked for once more while its votes are under way', () => {
  /** The first attempt gets every vote; of a second one nobody but the first server tells. */
  const twice = (): World & { readonly store: Store } => {
    const all = open(3)
    let first: number | undefined
    all.members.forEach(({ on }, at) => {
      on.vote = async (call, vote) => {
        const answer = call()
        await Promise.resolve()
        const { attempt } = vote as VoteRequest
        first ??= attempt
        return attempt === first || at === 0 ? answer : SILENT
      }
    })
    return all
  }

  it('keeps what the first request was granted', async () => {
    const all = twice()
    const [first, second] = await Promise.all([
      all.store.claim(request('x', 'a.1'), TIMEOUT),
      all.store.claim(request('x', 'a.1'), TIMEOUT),
    ])
    expect(first.kind).toBe('held')
    expect(second).toEqual(first)
    expect(holders(all)).toEqual(['a.1', 'a.1', 'a.1'])
  })

  it('is voted on anew where the first request was not granted', async () => {
    const all = open(3)
    for (const { on } of all.members) {
      let asked = 0
      on.vote = async (call) => (asked++ === 0 ? SILENT : call())
    }
    const [first, second] = await Promise.all([
      all.store.claim(request('x', 'a.1'), TIMEOUT),
      all.store.claim(request('x', 'a.1'), TIMEOUT),
    ])
    expect([first.kind, second.kind]).toEqual(['unknown', 'held'])
  })

  it('is not voted on when its time was over before that of the first', async () => {
    const all = open(3)
    const held = new Held()
    for (const { on } of all.members) on.vote = held.steer
    const first = all.store.claim(request('x', 'a.1'), TIMEOUT)
    const second = all.store.claim(request('x', 'a.1'), 10)
    await all.env.advance(11)
    while (held.count > 0) held.release()
    expect((await first).kind).toBe('held')
    expect((await second).kind).toBe('unknown')
  })
})

describe('a claim that two clients of the quorum ask for', () => {
  // As two lock servers do: a program that got no answer at the one went on to the other.
  it.each(['one', 'two'])(
    'stays with the one that was granted it when the other one gives up, of which %s has asked first',
    async (first) => {
      const { store, members, stores, clock, env } = open(3)
      const other = quorumStore(stores, { setUp: 'now', clock })
      const [one, two] = first === 'one' ? [store, other] : [other, store]
      const unheard = new Held()
      for (const { on } of members.slice(1)) on.vote = unheard.steer
      const left = one.claim(request('x', 'a.1'), TIMEOUT)
      for (const { on } of members.slice(1)) delete on.vote
      expect((await two.claim(request('x', 'a.1'), TIMEOUT)).kind).toBe('held')
      unheard.drop()
      expect((await left).kind).toBe('unknown')
      await env.settle()
      expect((await two.claim(request('x', 'b.1'), TIMEOUT)).kind).toBe('busy')
    },
  )

  it('stays with the one that was granted it while the other one asks on', async () => {
    const { store, members, stores, clock, env } = open(3)
    const both = [store, quorumStore(stores, { setUp: 'now', clock })]
    for (const [one, two] of [both, both.toReversed()] as [Store, Store][]) {
      expect((await two.claim(request('x', 'a.1'), TIMEOUT)).kind).toBe('held')
      for (const { on } of members) {
        on.vote = async (call) => {
          call()
          return SILENT
        }
      }
      expect((await one.claim(request('x', 'a.1'), TIMEOUT)).kind).not.toBe('held')
      for (const { on } of members) delete on.vote
      await env.settle()
      expect((await two.renew([{ ...CLAIM, ttl: TTL, patience: 500, tokens: 0 }], TIMEOUT))[0]?.kind).toBe(
        'renewed',
      )
      await two.release(CLAIM, undefined, TIMEOUT)
    }
  })
})
