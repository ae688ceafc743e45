import { Pool } from 'pg'
import type { PoolClient } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, postgres } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import { endedWorkCases } from '../sql/ended-work-cases.ts'
import { request } from '../sql/short-run.ts'

/** What work may do to its transaction and go on. */
const WORKS: Readonly<Record<string, readonly string[]>> = {
  'a failure that was swallowed': ['SELECT 1/0'],
  'a failure, and a statement after it': ['SELECT 1/0', 'SELECT 1'],
  'a commit': ['COMMIT'],
  'a rollback': ['ROLLBACK'],
  'another transaction': ['ROLLBACK', 'BEGIN'],
  'another transaction after a commit': ['COMMIT', 'BEGIN'],
  'another transaction by chain': ['ROLLBACK AND CHAIN'],
}

describe.skipIf(!available('postgres'))('guarded work that ends its transaction, PostgreSQL', () => {
  let server: Server
  let pool: Pool
  let holdfast: Holdfast
  let names = 0

  beforeAll(async () => {
    server = await postgres()
    pool = new Pool({ connectionString: server.url, max: 4 })
    pool.on('error', () => {})
    await pool.query('CREATE TABLE entries (line text)')
    holdfast = new Holdfast(postgresStore(pool, { listen: false }))
  })
  afterAll(async () => {
    await holdfast.close({ drain: 0 })
    await pool.end()
    await server.stop()
  })

  const count = async (line: string): Promise<number> =>
    (await pool.query('SELECT 1 FROM entries WHERE line = $1', [line])).rowCount ?? 0

  const cases = Object.keys(WORKS).flatMap((how) => ['returns', 'throws'].map((end) => ({ how, end })))

  it.each(cases)('does not say committed: $how, and then it $end', async ({ how, end }) => {
    const store = postgresStore(pool, { listen: false })
    const name = `ended ${(names += 1)}`
    const work = async (tx: PoolClient): Promise<void> => {
      await tx.query('INSERT INTO entries VALUES ($1)', [name])
      for (const sql of WORKS[how] ?? []) await tx.query(sql).catch(() => {})
      if (end === 'throws') throw new Error('changed my mind')
    }
    const over = !how.startsWith('a failure')
    const said = over ? 'was over' : end === 'returns' ? 'A statement failed' : 'changed my mind'
    const code = said === 'changed my mind' ? {} : { code: 'INVALID_ARGUMENT', argument: 'work' }
    const guarded = holdfast.mutex(name).run((lease) => store.guarded(lease, work))
    await expect(guarded).rejects.toMatchObject({
      ...code,
      message: expect.stringContaining(said) as unknown,
    })
    expect(await count(name)).toBe(WORKS[how]?.[0] === 'COMMIT' ? 1 : 0)
    // And the connection is good for the next.
    await holdfast
      .mutex(name)
      .run((lease) =>
        store.guarded(lease, (tx) => tx.query('INSERT INTO entries VALUES ($1)', [`${name} next`])),
      )
    expect(await count(`${name} next`)).toBe(1)
  })

  endedWorkCases<PoolClient>(() => ({
    holdfast,
    store: postgresStore(pool, { listen: false }),
    write: (tx, line) => tx.query('INSERT INTO entries VALUES ($1)', [line]),
    count,
  }))

  it('commits after a failure behind a savepoint', async () => {
    const store = postgresStore(pool, { listen: false })
    await holdfast.mutex('savepoint').run((lease) =>
      store.guarded(lease, async (tx) => {
        await tx.query(`INSERT INTO entries VALUES ('savepoint')`)
        await tx.query('SAVEPOINT mine')
        await tx.query('SELECT 1/0').catch(() => {})
        await tx.query('ROLLBACK TO mine')
      }),
    )
    expect(await count('savepoint')).toBe(1)
  })

  it('keeps a claim from being taken over also when it has another id here, behind a lock server', async () => {
    const store = postgresStore(pool, { listen: false })
    const name = 'front'
    const answer = await store.claim(request(name, { ttl: 300 }), 5000)
    const token = answer.kind === 'held' ? answer.token : 0n
    const tx = await pool.connect()
    await tx.query('BEGIN')
    await store.guard({ name, token, held: true, assertHeld: () => {} }, tx)
    const thief = new Holdfast(store)
    const order: string[] = []
    const stolen = thief
      .mutex('front')
      .acquire({ wait: 20_000 })
      .then(() => order.push('stolen'))
    await new Promise((resolve) => setTimeout(resolve, 900))
    order.push('ended')
    await tx.query('COMMIT')
    tx.release()
    await stolen
    expect(order).toEqual(['ended', 'stolen'])
    await thief.close({ drain: 0 })
  })

  it('refuses guard outside of a transaction, and knows one that was begun a moment ago', async () => {
    const store = postgresStore(pool, { listen: false })
    const lease = await holdfast.mutex('by hand').acquire()
    const tx = await pool.connect()
    for (const like of [tx, { query: tx.query.bind(tx) } as unknown as PoolClient]) {
      await expect(store.guard(lease, like)).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        argument: 'tx',
      })
      const begun = tx.query('BEGIN')
      await store.guard(lease, like)
      await begun
      await tx.query('COMMIT')
    }
    tx.release()
    await lease.release()
  })
})
