import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import fc from 'fast-check'
import { expect, it } from 'vitest'

import { hashToken } from '../../../src/server/index.ts'
import { Principal } from '../../../src/server/rights.ts'
import { searchesOf } from '../../../src/server/visible-names.ts'
import { call, serve, take, temporaryFolder } from '../helpers.ts'
import { openSession } from './session.ts'

const SPY = 'spy-0123456789-0123456789-0123'
const OPS = 'ops-0123456789-0123456789-0123'

function tokensFile(prefixes: string): string {
  const path = join(temporaryFolder(), 'tokens')
  writeFileSync(path, `spy ${hashToken(SPY)} read ${prefixes}\nops ${hashToken(OPS)} admin *\n`, {
    mode: 0o600,
  })
  return path
}

interface Page {
  readonly names: readonly string[]
  readonly cursor?: string
}

it('gives a reader the same answers, cursors and all, whatever names of others there are', async () => {
  const seen: unknown[] = []
  for (const secrets of [[], ['k', 'secret/launch', 'secret/longer-name', 'mines', 'mine-shaft', 'z']]) {
    const server = await serve({ tokensFile: tokensFile('mine') })
    for (const name of ['mine', 'mine/a', 'mine/b', 'mine:c', ...secrets]) {
      const { status } = await call(server, 'POST /v1/acquire', {
        body: { name, ttl: 60_000 },
        headers: { authorization: `Bearer ${OPS}` },
      })
      expect(status).toBe(200)
    }
    const answers: unknown[] = []
    for (const prefix of ['', 'm', 'mine', 'mine/', 's', 'secret/', 'k', 'z'])
      for (const limit of [1, 2, 3, 100]) {
        let cursor = ''
        for (let page = 0; page < 10; page++) {
          const query = new URLSearchParams({
            prefix,
            limit: String(limit),
            ...(cursor === '' ? {} : { cursor }),
          })
          const { body } = await call(server, `GET /v1/locks?${query.toString()}`, {
            headers: { authorization: `Bearer ${SPY}` },
          })
          const { names, cursor: next } = body as unknown as Page
          answers.push([prefix, limit, page, names, next?.length])
          if (next === undefined) break
          cursor = next
        }
      }
    seen.push(answers)
  }
  expect(seen[1]).toEqual(seen[0])
  const lengths = (seen[0] as unknown[][]).map((answer) => answer[4]).filter(Boolean)
  expect(new Set(lengths).size).toBe(1)
})

it('finds every name that may be read, and no other, by any prefix', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '/', ':'), maxLength: 4 })
  fc.assert(
    fc.property(
      fc.array(text.filter(Boolean), { maxLength: 4 }),
      text,
      text.filter(Boolean),
      (readable, prefix, name) => {
        const principal = new Principal('p', ['read'], readable)
        const found = searchesOf(readable, prefix).filter(({ kind, text: asked }) =>
          kind === 'name' ? name === asked : name.startsWith(asked),
        )
        const wanted = name.startsWith(prefix) && principal.may('read', name)
        expect(found).toHaveLength(wanted ? 1 : 0)
      },
    ),
    { numRuns: 5000 },
  )
})

it('costs little for a token that may read thousands of prefixes', () => {
  const cost = (count: number): number => {
    const readable = Array.from({ length: count }, (_, index) => `team${index}`)
    searchesOf(readable, '')
    const before = process.cpuUsage()
    for (let round = 0; round < 5; round++) expect(searchesOf(readable, '')).toHaveLength(count * 3)
    return process.cpuUsage(before).user
  }
  // Compiled by then.
  cost(400)
  // Ten times as many take ten times as long, and not a hundred times.
  expect(cost(4000) / cost(400)).toBeLessThan(40)
})

it('counts every lease, and lets none end early, though somebody uses one id for many names', async () => {
  const server = await serve({ limits: { leasesPerPrincipal: 3 } })
  const session = await openSession(server)
  const claim = { weight: 1, capacity: 1, patience: 5000, tokens: 1, whenBusy: 'try', owner: 'o' }
  expect(await session.ask('claim', { ...claim, ttl: 60_000, name: 'long', id: 's.1' })).toMatchObject({
    kind: 'held',
  })
  for (let index = 0; index < 5; index++) {
    const answer = await session.ask('claim', { ...claim, ttl: 100, name: `n${index}`, id: 's.1' })
    expect(answer).toMatchObject({ kind: 'unknown', code: 'ID_IN_USE' })
  }
  await take(server, { name: 'x' })
  await take(server, { name: 'y' })
  expect((await call(server, 'POST /v1/acquire', { body: { name: 'z' } })).body.error.code).toBe('TOO_MANY')
  expect((await call(server, 'GET /v1/locks')).body).toEqual({ names: ['long', 'x', 'y'] })
})
