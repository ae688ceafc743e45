import { setTimeout as sleep } from 'node:timers/promises'

import { createPool } from 'mysql2/promise'
import type { Pool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, mariadb } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import type { ClaimRequest } from '../../../src/core/contract.ts'
import { mysqlStore } from '../../../src/stores/mysql/index.ts'
import { request } from '../sql/short-run.ts'

const TIMEOUT = 20_000
const many = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index)

describe.skipIf(!available('mariadb'))('processes that wait for many names in MariaDB', () => {
  let server: Server
  let pool: Pool

  beforeAll(async () => {
    server = await mariadb()
    pool = createPool({ uri: server.url, connectionLimit: 4 })
  })
  afterAll(async () => {
    await pool.end()
    await server.stop()
  })

  const counts = async (): Promise<Readonly<Record<string, number>>> => {
    const [rows] = await pool.query(
      `SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_update', 'Com_select', 'Com_insert')`,
    )
    const list = rows as { Variable_name: string; Value: string }[]
    return Object.fromEntries(list.map(({ Variable_name, Value }) => [Variable_name, Number(Value)]))
  }
  const heard = async (prefix: string): Promise<readonly number[]> => {
    const [rows] = await pool.query(
      `SELECT queue FROM holdfast_locks WHERE name LIKE '${prefix}%' ORDER BY name`,
    )
    return (rows as { queue: string }[]).flatMap(({ queue }) =>
      (JSON.parse(queue) as { waiters: { heard: number }[] }).waiters.map((waiter) => waiter.heard),
    )
  }
  /** Names that are held, and a claim in line for each. */
  const line = async (prefix: string, count: number): Promise<readonly ClaimRequest[]> => {
    const store = mysqlStore(pool)
    const waiting = many(count).map((index) => request(`${prefix} ${index}`, { patience: 60_000 }))
    await Promise.all(
      waiting.map(async (claim) => {
        expect(await store.claim(request(claim.name, { ttl: 300_000 }), TIMEOUT)).toMatchObject({
          kind: 'held',
        })
        expect(await store.claim(claim, TIMEOUT)).toMatchObject({ kind: 'queued' })
      }),
    )
    return waiting
  }
  /** With less patience than before, so that each has something to write. */
  const sign = (claims: readonly ClaimRequest[], patience: number): ClaimRequest[] =>
    claims.map((claim) => ({ ...claim, patience }))

  it('show that they are there by a statement for fifty names, and look by one for all', async () => {
    const waiting = await line('many', 120)
    const store = mysqlStore(pool)
    const before = [await counts(), await heard('many')] as const
    await sleep(5)
    const answers = await store.renew(sign(waiting, 50_000), TIMEOUT)
    expect(answers).toMatchObject(waiting.map(() => ({ kind: 'queued' })))
    const [was, is] = [before[0], await counts()]
    expect((is['Com_update'] ?? 0) - (was['Com_update'] ?? 0)).toBeLessThanOrEqual(1 + 3)
    expect((is['Com_select'] ?? 0) - (was['Com_select'] ?? 0)).toBeLessThanOrEqual(4)
    const now = await heard('many')
    expect(now).toHaveLength(120)
    expect(now.filter((at, index) => at <= (before[1][index] ?? 0))).toEqual([])
    // Nothing to write: nothing but a look.
    expect(await store.renew(sign(waiting, 50_000), TIMEOUT)).toMatchObject(
      waiting.map(() => ({ kind: 'queued' })),
    )
    expect((await counts())['Com_update']).toBe(is['Com_update'])
  })

  it('are all kept in line while several write to the same names', async () => {
    const prefix = 'contested'
    const first = await line(prefix, 60)
    const others = many(3).map(() => first.map(({ name }) => request(name, { patience: 60_000 })))
    const processes = [first, ...others].map((claims) => ({ claims, store: mysqlStore(pool) }))
    for (const { claims, store } of processes.slice(1)) {
      for (const claim of claims) expect(await store.claim(claim, TIMEOUT)).toMatchObject({ kind: 'queued' })
    }
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all(
        processes.map(async ({ claims, store }) => store.renew(sign(claims, 50_000 + round), TIMEOUT)),
      )
      expect(answers.flat()).toMatchObject(answers.flat().map(() => ({ kind: 'queued' })))
      expect(answers.flat()).toHaveLength(240)
    }
    const [mine, theirs] = [mysqlStore(pool), mysqlStore(pool)]
    const info = await mine.inspect(`${prefix} 7`, TIMEOUT)
    expect(info).toMatchObject({
      holders: [{}],
      waiters: processes.map(({ claims }) => ({ id: claims[7]?.id })),
    })
    // A lock that is given up in the middle goes to the first, whoever writes.
    const [rows] = await pool.query(`SELECT claim FROM holdfast_locks WHERE name = '${prefix} 7'`)
    const id = String((rows as { claim: Buffer }[])[0]?.claim)
    await Promise.all([
      mine.release({ name: `${prefix} 7`, id }, undefined, TIMEOUT),
      theirs.renew(sign(others[0] ?? [], 40_000), TIMEOUT),
    ])
    const kinds = (await mine.renew(sign(first, 40_000), TIMEOUT)).map(({ kind }) => kind)
    expect(kinds).toEqual(first.map((_, index) => (index === 7 ? 'held' : 'queued')))
  })
})
