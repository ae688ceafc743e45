import { Client, Pool } from 'pg'
import type { PoolClient } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, pgbouncer, postgres } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import type { PostgresClient } from '../../../src/stores/postgres/client.ts'
import { fenced, optimistic, postgresStore } from '../../../src/stores/postgres/index.ts'
import { request } from '../sql/short-run.ts'

const BEGINS = [
  'BEGIN',
  'BEGIN ISOLATION LEVEL REPEATABLE READ',
  'BEGIN; SAVEPOINT mine',
  'BEGIN; SELECT 1/0',
]

describe.skipIf(!available('postgres'))('a PostgreSQL store and somebody else’s transaction', () => {
  let server: Server
  let admin: Client
  let names = 0

  beforeAll(async () => {
    server = await postgres()
    admin = new Client({ connectionString: server.url })
    await admin.connect()
    await admin.query('CREATE TABLE entries (line text)')
    await admin.query('CREATE TABLE rows_of_users (id int PRIMARY KEY, n int, version int, fence bigint)')
  })
  afterAll(async () => {
    await admin.end()
    await server.stop()
  })

  const holdersOf = async (name: string): Promise<number> => {
    const { rowCount } = await admin.query(
      'SELECT 1 FROM holdfast_locks WHERE name = $1 AND claim IS NOT NULL',
      [name],
    )
    return rowCount ?? 0
  }

  it.each(BEGINS)(
    'writes to no table of the user’s inside of what a client was given back to the pool with: %s',
    async (begin) => {
      const pool = new Pool({ connectionString: server.url, max: 2 })
      pool.on('error', () => {})
      const id = (names += 1)
      await admin.query('INSERT INTO rows_of_users VALUES ($1, 0, 0, NULL)', [id])
      const rows = { table: 'rows_of_users', key: 'id' }
      const writes = [
        () => optimistic(pool, rows).update(id, () => ({ n: 1 })),
        () => fenced(pool, rows).update(id, 5n, { n: 2 }),
      ]
      for (const [index, write] of writes.entries()) {
        const leaked = await pool.connect()
        await leaked.query(begin).catch(() => {})
        await leaked.query('SELECT 1').catch(() => {})
        leaked.release()
        await write()
        // Seen by everybody, at once.
        expect((await admin.query('SELECT n FROM rows_of_users WHERE id = $1', [id])).rows).toEqual([
          { n: index + 1 },
        ])
      }
      await pool.end()
    },
  )

  it('writes to no table of the user’s with a pool that only has clients in a transaction', async () => {
    const pool = new Pool({ connectionString: server.url, max: 2 })
    pool.on('error', () => {})
    const connect = pool.connect.bind(pool) as (
      callback: (error: Error | undefined, client: PoolClient) => void,
    ) => void
    pool.connect = ((callback: (error: Error | undefined, client: PoolClient) => void) =>
      connect((error, client) => {
        client.query('BEGIN', () => callback(error, client))
      })) as never
    const rows = fenced(pool, { table: 'rows_of_users', key: 'id' })
    await expect(rows.update(1, 5n, { n: 9 })).rejects.toMatchObject({ code: 'HOLDFAST_AUTOCOMMIT' })
    await pool.end()
  })

  it.each(BEGINS)(
    'grants nothing inside of what a client was given back to the pool with: %s',
    async (begin) => {
      const pool = new Pool({ connectionString: server.url, max: 2 })
      pool.on('error', () => {})
      const store = postgresStore(pool, { listen: false })
      expect(await store.inspect('ready', 5000)).toMatchObject({ holders: [] })
      for (const known of [false, true]) {
        const name = `leaked ${(names += 1)}`
        if (known) await store.release(await held(store, name), undefined, 5000)
        const leaked = await pool.connect()
        await leaked.query(begin).catch(() => {})
        await leaked.query('SELECT 1').catch(() => {})
        leaked.release()
        const claim = await held(store, name)
        // Seen by everybody, at once.
        expect(await holdersOf(name)).toBe(1)
        await store.release(claim, undefined, 5000)
      }
      await store.close()
      await pool.end()
    },
  )

  it.each([
    ['of pg', (client: Client): PostgresClient => client],
    ['that only looks like one of pg', lookalike],
  ])('refuses a client %s that is in a transaction, and leaves that alone', async (_, wrap) => {
    const client = new Client({ connectionString: server.url })
    await client.connect()
    const store = postgresStore(wrap(client), { listen: false })
    const name = `single ${(names += 1)}`
    await store.release(await held(store, name), undefined, 5000)
    await client.query('BEGIN')
    await client.query(`INSERT INTO entries VALUES ('${name}')`)
    expect(await store.claim(request(name), 5000)).toMatchObject({
      kind: 'unknown',
      retryable: false,
      cause: { message: expect.stringContaining('in a transaction') as unknown },
    })
    await client.query('COMMIT')
    expect((await admin.query('SELECT 1 FROM entries WHERE line = $1', [name])).rowCount).toBe(1)
    expect(await holdersOf(name)).toBe(0)
    await held(store, name)
    await store.close()
    await client.end()
  })

  it('guards no transaction where the locks are but a copy, and others would not wait for it', async () => {
    await admin.query('CREATE DATABASE copied')
    const elsewhere = new Pool({ connectionString: server.url.replace(/\w+$/, 'copied') })
    const pool = new Pool({ connectionString: server.url, max: 2 })
    await postgresStore(elsewhere).inspect('ready', 5000)
    const store = postgresStore(pool, { listen: false })
    const holdfast = new Holdfast(store)
    const lease = await holdfast.mutex('copied').acquire()
    const { rows } = await pool.query<object>("SELECT * FROM holdfast_locks WHERE name = 'copied'")
    await elsewhere.query(
      'INSERT INTO holdfast_locks SELECT (json_populate_record(NULL::holdfast_locks, $1)).*',
      [JSON.stringify(rows[0])],
    )
    const tx = await elsewhere.connect()
    const run = async (sql: string, params: unknown[]): Promise<unknown> => tx.query(sql, params)
    for (const given of [tx, run]) {
      await tx.query('BEGIN')
      await expect(store.guard(lease, given)).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        argument: 'tx',
      })
      await tx.query('ROLLBACK')
    }
    tx.release()
    // In the store's own database it does, also with the pool's last connection.
    const [own, last] = [await pool.connect(), await pool.connect()]
    await own.query('BEGIN')
    await store.guard(lease, own)
    last.release()
    await store.guard(lease, own)
    await own.query('COMMIT')
    own.release()
    await holdfast.close()
    await elsewhere.end()
    await pool.end()
  })

  it('does not say that it was granted when a transaction was begun right before, on the same client', async () => {
    const client = new Client({ connectionString: server.url })
    await client.connect()
    const store = postgresStore(client, { listen: false })
    const name = `between ${(names += 1)}`
    await store.release(await held(store, name), undefined, 5000)
    // On its way when the store looks: the client is in no transaction yet.
    const begun = client.query('BEGIN')
    const answer = store.claim(request(name), 5000)
    await begun
    expect(await answer).toMatchObject({ kind: 'unknown' })
    await client.query('ROLLBACK')
    await store.close()
    await client.end()
  })

  describe.skipIf(!available('pgbouncer'))('behind PgBouncer', () => {
    it('grants nothing inside of one either', async () => {
      const bouncer = await pgbouncer({ upstream: server })
      const pool = new Pool({ connectionString: bouncer.url, max: 2 })
      pool.on('error', () => {})
      const store = postgresStore(pool, { listen: false })
      const leaked = await pool.connect()
      await leaked.query('BEGIN')
      leaked.release()
      const name = `bounced ${(names += 1)}`
      await held(store, name)
      expect(await holdersOf(name)).toBe(1)
      await store.close()
      await pool.end()
      await bouncer.stop()
    })
  })
})

async function held(
  store: ReturnType<typeof postgresStore>,
  name: string,
): Promise<ReturnType<typeof request>> {
  const claim = request(name)
  expect(await store.claim(claim, 5000)).toMatchObject({ kind: 'held' })
  return claim
}

/** Without what shows what the server says. */
function lookalike(client: Client): PostgresClient {
  return {
    query: (query) => client.query(query as never) as never,
    on: (event: string, listener: (...args: never[]) => void) => client.on(event as never, listener as never),
    removeListener: (event: string, listener: (...args: never[]) => void) =>
      client.removeListener(event, listener as never),
  }
}
