import type { Store } from 'holdfast'
import { redisStore } from 'holdfast/redis'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, redis } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import type { ListPage, ListQuery, Unknown } from '../../../src/core/contract.ts'

const NAMES = 1_500
const OTHERS = 6_000

const nameOf = (at: number): string => `name ${at}`

type Pages = (query: ListQuery) => Promise<ListPage | Unknown>

/** The names of each page, with something done between each two of them. */
async function pagesOf(
  page: Pages,
  limit: number,
  between: () => Promise<unknown> = () => Promise.resolve(),
): Promise<(readonly string[])[]> {
  const pages: (readonly string[])[] = []
  for (let cursor: string | undefined; ;) {
    const answer = await page({ limit, cursor })
    if ('kind' in answer) throw answer.cause
    pages.push(answer.names)
    ;({ cursor } = answer)
    if (cursor === undefined) return pages
    await between()
  }
}

describe.skipIf(!available('redis'))('a list in pages', () => {
  let server: Server
  let client: Redis
  let store: Store
  beforeAll(async () => {
    server = await redis()
    client = new Redis(server.port, server.host)
    store = redisStore(client)
    const all = Array.from({ length: NAMES }, (_, at) => ({ name: nameOf(at), id: `s.${at}` }))
    const terms = { ttl: 600_000, tokens: 1, owner: 'test' }
    const claim = { ...terms, weight: 1, capacity: 1, patience: 500, whenBusy: 'try' } as const
    const vote = { ...terms, attempt: 1, probation: 0, interest: false }
    await Promise.all(all.map(async (one) => store.claim({ ...claim, ...one }, 30_000)))
    await Promise.all(all.map(async (one) => store.votes?.vote({ ...vote, ...one }, 30_000)))
  }, 60_000)
  afterAll(async () => {
    await store.close()
    client.disconnect()
    await server.stop()
  })

  const lists: readonly (readonly [string, Pages])[] = [
    ['locks', async (query) => store.list(query, 10_000)],
    ['votes', async (query) => store.votes?.names(query, 10_000) ?? { names: [] }],
  ]

  // A step of SCAN looks at so many keys, whoever's they are: it goes further when some of them have gone.
  it.each(lists)('shows all %s while other keys of the database go', async (_, page) => {
    const others = Array.from({ length: OTHERS }, (__, at) => `cache:${at}`)
    await client.mset(...others.flatMap((key) => [key, 'x']))
    const pages = await pagesOf(page, 25, () => client.del('none', ...others.splice(-100)))
    expect(new Set(pages.flat()).size).toBe(NAMES)
    expect(pages.every(({ length }) => length <= 25)).toBe(true)
  })

  it.each(lists)('shows all %s one by one, and hardly any twice', async (_, page) => {
    const pages = await pagesOf(page, 1)
    expect(new Set(pages.flat()).size).toBe(NAMES)
    expect(pages.length).toBeLessThan(NAMES * 1.05)
  })
})
