import { describe, expect, it } from 'vitest'

import type { ListPage, NameInfo, Store } from '../../../../src/core/contract.ts'
import { quorumStore } from '../../../../src/stores/quorum/index.ts'
import { fails, request, SILENT, TIMEOUT, TTL, world } from './kit.ts'
import type { Member, Steer, World } from './kit.ts'

function open(count: number): World & { readonly store: Store } {
  const all = world(count)
  return { ...all, store: quorumStore(all.stores, { setUp: 'now', clock: all.clock }) }
}

const alone = ({ votes }: Member, id: string, ttl = TTL, name = 'x'): unknown =>
  votes.vote({ ...request(name, id, { ttl }), attempt: 1, probation: 0, interest: false })

describe('inspect', () => {
  it('shows who has it, with which token, and for how long', async () => {
    const { store, env } = open(3)
    const answer = (await store.claim(request('x', 'a.1', { owner: 'me' }), TIMEOUT)) as { token: bigint }
    await env.advance(1_000)
    expect(await store.inspect('x', TIMEOUT)).toEqual({
      name: 'x',
      capacity: 1,
      holders: [{ id: 'a.1', owner: 'me', weight: 1, token: answer.token, expiresIn: TTL - 1_000 }],
      waiters: [],
    })
    expect(await store.inspect('y', TIMEOUT)).toEqual({ name: 'y', capacity: 1, holders: [], waiters: [] })
  })

  it('shows nobody that only a minority says so of, and nobody twice', async () => {
    const { store, members } = open(5)
    const [a, b, c, d, e] = members as [Member, Member, Member, Member, Member]
    for (const each of [a, b]) alone(each, 'a.1')
    for (const each of [c, d]) alone(each, 'b.1')
    expect(((await store.inspect('x', TIMEOUT)) as NameInfo).holders).toEqual([])
    alone(e, 'b.1')
    expect(((await store.inspect('x', TIMEOUT)) as NameInfo).holders).toMatchObject([{ id: 'b.1' }])
  })

  it('tells an attempt from one before', async () => {
    const { store, members } = open(3)
    const [a, b, c] = members as [Member, Member, Member]
    alone(a, 'a.1')
    for (const [{ votes }, attempt] of [
      [b, 2],
      [c, 3],
    ] as const)
      votes.vote({ ...request('x', 'a.1'), attempt, probation: 0, interest: false })
    expect(((await store.inspect('x', TIMEOUT)) as NameInfo).holders).toEqual([])
  })

  it('shows the token that a majority has, and not a larger one that only a minority proposed', async () => {
    const { store, members, env } = open(3)
    const [a, b, c] = members as [Member, Member, Member]
    for (const each of [a, b]) alone(each, 'a.1')
    await env.advance(1_500)
    alone(c, 'a.1')
    const { token } = a.votes.inspect('x') as { token: bigint }
    expect((c.votes.inspect('x') as { token: bigint }).token).toBeGreaterThan(token)
    expect(((await store.inspect('x', TIMEOUT)) as NameInfo).holders).toMatchObject([{ token }])
  })

  it('shows the largest token where no majority has one', async () => {
    const { store, members, env } = open(3)
    for (const each of members) {
      alone(each, 'a.1')
      await env.advance(1_500)
    }
    const tokens = members.map(({ votes }) => (votes.inspect('x') as { token: bigint }).token)
    expect(new Set(tokens).size).toBe(3)
    expect(((await store.inspect('x', TIMEOUT)) as NameInfo).holders).toMatchObject([{ token: tokens[2] }])
  })

  it('says that it lasts as long as a majority remembers it', async () => {
    const { store, members } = open(5)
    ;[500, 100, 400, 200, 300].forEach((ttl, at) => alone(members[at] as Member, 'a.1', ttl))
    expect(((await store.inspect('x', TIMEOUT)) as NameInfo).holders).toMatchObject([{ expiresIn: 300 }])
  })

  it.each([
    [5, 2],
    [4, 1],
  ])('works at %i stores while %i do not answer, and not with one more', async (count, silent) => {
    const { store, members } = open(count)
    await store.claim(request('x', 'a.1'), TIMEOUT)
    for (const { on } of members.slice(0, silent)) on.inspect = fails
    expect(await store.inspect('x', TIMEOUT)).toMatchObject({ holders: [{ id: 'a.1' }] })
    const [more] = members.slice(silent) as [Member]
    more.on.inspect = fails
    const answer = await store.inspect('x', TIMEOUT)
    expect(answer).toMatchObject({ kind: 'unknown', cause: { code: 'QUORUM_UNAVAILABLE' } })
    const { nodes } = (answer as unknown as { cause: { nodes: readonly { state: string }[] } }).cause
    expect(nodes.filter(({ state }) => state === 'no answer')).toHaveLength(silent + 1)
  })
})

describe('the list of names', () => {
  it('has those that a majority has, in order', async () => {
    const { store, members } = open(3)
    const [a, b] = members as [Member, Member]
    for (const name of ['d', 'a', 'c']) await store.claim(request(name, `a.${name}`), TIMEOUT)
    alone(a, 'b.1', TTL, 'b')
    alone(b, 'b.2', TTL, 'e')
    expect(await store.list({}, TIMEOUT)).toEqual({ names: ['a', 'c', 'd'] })
    alone(b, 'b.1', TTL, 'b')
    expect(await store.list({}, TIMEOUT)).toEqual({ names: ['a', 'b', 'c', 'd'] })
  })

  it('is told in pages, each name once, and the last page says that it is', async () => {
    const { store } = open(3)
    const all = Array.from({ length: 7 }, (_, at) => `p:${at}`)
    for (const name of [...all, 'other']) await store.claim(request(name, `a.${name}`), TIMEOUT)
    for (const limit of [1, 2, 3, 6, 7, 8]) {
      const seen: string[] = []
      let pages = 0
      for (let cursor: string | undefined; ; pages++) {
        const page = (await store.list(
          { prefix: 'p:', limit, ...(cursor && { cursor }) },
          TIMEOUT,
        )) as ListPage
        expect(page.names.length).toBeLessThanOrEqual(limit)
        seen.push(...page.names)
        cursor = page.cursor
        if (cursor === undefined) break
      }
      expect(seen).toEqual(all)
      // After a page that is just full an empty one may follow, and no more.
      expect(pages + 1).toBeLessThanOrEqual(Math.ceil(all.length / limit) + 1)
    }
  })

  it('has a name that a majority may have: some keep there what they cannot read', async () => {
    const { store, members } = open(3)
    const [a, b, c] = members as [Member, Member, Member]
    alone(a, 'a.1', TTL, 'odd')
    await store.claim(request('x', 'a.2'), TIMEOUT)
    expect(await store.list({}, TIMEOUT)).toEqual({ names: ['x'] })
    const unreadable = { ...SILENT, retryable: false }
    const oddly: Steer = (call, name) => (name === 'odd' ? unreadable : (call() as never))
    b.on.inspect = oddly
    expect(await store.list({}, TIMEOUT)).toEqual({ names: ['odd', 'x'] })
    c.on.inspect = oddly
    expect(await store.list({}, TIMEOUT)).toEqual({ names: ['odd', 'x'] })
    // Silence is another matter: they are asked again, and nothing is said of the names.
    b.on.inspect = c.on.inspect = fails
    expect(await store.list({}, TIMEOUT)).toMatchObject({ kind: 'unknown' })
  })

  it('needs a majority that answers', async () => {
    const { store, members } = open(3)
    await store.claim(request('x', 'a.1'), TIMEOUT)
    const [a, b] = members as [Member, Member]
    a.on.names = fails
    expect(await store.list({}, TIMEOUT)).toEqual({ names: ['x'] })
    b.on.names = fails
    expect(await store.list({}, TIMEOUT)).toMatchObject({
      kind: 'unknown',
      cause: { code: 'QUORUM_UNAVAILABLE' },
    })
  })

  it('has a hundred in a page by itself', async () => {
    const { store } = open(2)
    for (let at = 0; at < 101; at++) await store.claim(request(`n ${at}`, `a.${at}`), TIMEOUT)
    const page = (await store.list({}, TIMEOUT)) as ListPage
    expect(page.names).toHaveLength(100)
    const rest = (await store.list({ cursor: page.cursor }, TIMEOUT)) as ListPage
    expect(rest.names).toHaveLength(1)
    expect(page.names).not.toContain(rest.names[0])
  })
})
