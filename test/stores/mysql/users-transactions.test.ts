import { setTimeout as sleep } from 'node:timers/promises'

import { createPoolCluster as createCallbackCluster } from 'mysql2'
import { createConnection, createPool, createPoolCluster } from 'mysql2/promise'
import type { Connection, Pool, PoolConnection } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, mariadb } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import type { Store } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import { fenced, mysqlStore, optimistic } from '../../../src/stores/mysql/index.ts'
import { request } from '../sql/short-run.ts'

describe.skipIf(!available('mariadb'))('a MySQL store and somebody else’s transaction', () => {
  let server: Server
  let admin: Pool
  let names = 0

  beforeAll(async () => {
    server = await mariadb()
    admin = createPool({ uri: server.url })
    await admin.query('CREATE TABLE entries (line varchar(100) NOT NULL)')
    await admin.query('CREATE TABLE rows_of_users (id int PRIMARY KEY, n int, version int, fence bigint)')
  })
  afterAll(async () => {
    await admin.end()
    await server.stop()
  })

  const holdersOf = async (name: string): Promise<number> => {
    const [rows] = await admin.query('SELECT 1 FROM holdfast_locks WHERE name = ? AND claim IS NOT NULL', [
      name,
    ])
    return (rows as unknown[]).length
  }

  it.each(['BEGIN', 'START TRANSACTION WITH CONSISTENT SNAPSHOT', 'SET autocommit = 0'])(
    'says nothing of a lock inside of what a connection was given back to the pool with: %s',
    async (begin) => {
      const pool = createPool({ uri: server.url, connectionLimit: 1 })
      const store = mysqlStore(pool)
      // The table is there, or made: which would end the transaction.
      expect(await store.inspect('ready', 5000)).toMatchObject({ holders: [] })
      for (const known of [false, true]) {
        const name = `leaked ${(names += 1)}`
        if (known) await store.release(await held(store, name), undefined, 5000)
        const leaked = await pool.getConnection()
        await leaked.query(begin)
        leaked.release()
        const answer = await store.claim(request(name), 5000)
        expect(answer).toMatchObject({ kind: 'unknown', cause: { code: 'HOLDFAST_AUTOCOMMIT' } })
        expect(await holdersOf(name)).toBe(0)
        await pool.query('SET autocommit = 1')
        await pool.query('ROLLBACK')
      }
      await pool.end()
    },
  )

  const LEFT = ['BEGIN', 'SET autocommit = 0', `XA START 'left'`]

  it.each(LEFT)('writes to no table of the user’s after %s, where nobody would commit it', async (begin) => {
    const pool = createPool({ uri: server.url, connectionLimit: 1 })
    const id = (names += 1)
    await admin.query('INSERT INTO rows_of_users VALUES (?, 0, 0, NULL)', [id])
    const rows = { table: 'rows_of_users', key: 'id' }
    const writes = [
      () => optimistic(pool, rows).update(id, () => ({ n: 1 })),
      () => fenced(pool, rows).update(id, 5n, { n: 1 }),
    ]
    for (const write of writes) {
      const leaked = await pool.getConnection()
      await leaked.query(begin)
      leaked.release()
      await expect(write()).rejects.toMatchObject({ code: 'HOLDFAST_AUTOCOMMIT' })
    }
    // Not locked either, and the next connection is a good one.
    const seen = async (): Promise<unknown> =>
      (await admin.query('SELECT n FROM rows_of_users WHERE id = ? FOR UPDATE', [id]))[0]
    expect(await seen()).toEqual([{ n: 0 }])
    expect(await optimistic(pool, rows).update(id, () => ({ n: 2 }))).toMatchObject({ kind: 'updated' })
    expect(await fenced(pool, rows).update(id, 5n, { n: 3 })).toBe('written')
    expect(await seen()).toEqual([{ n: 3 }])
    await pool.end()
  })

  it.each(LEFT)('uses no connection twice that was given back after %s', async (begin) => {
    const pool = createPool({ uri: server.url, connectionLimit: 3 })
    const store = mysqlStore(pool)
    const claim = await held(store, `kept ${(names += 1)}`)
    const leaked = await pool.getConnection()
    await leaked.query(begin)
    leaked.release()
    const answers: string[] = []
    for (let round = 0; round < 3; round++) {
      const [answer] = await store.renew([{ ...claim, tokens: 0 }], 5000)
      answers.push(answer?.kind ?? 'none')
    }
    expect(answers).toEqual(['unknown', 'renewed', 'renewed'])
    await pool.end()
  })

  it.each([...LEFT.slice(0, 2), 'START TRANSACTION WITH CONSISTENT SNAPSHOT'])(
    'sees no old picture on a connection that was given back after %s',
    async (begin) => {
      const pool = createPool({ uri: server.url, connectionLimit: 3 })
      const store = mysqlStore(pool)
      const holdfast = new Holdfast(store)
      const name = `picture ${(names += 1)}`
      // What guards it is made, and nobody has it.
      await holdfast.mutex(name).run((lease) => store.guarded(lease, () => Promise.resolve()))
      const leak = async (): Promise<() => void> => {
        const [clean, leaked] = [await pool.getConnection(), await pool.getConnection()]
        await leaked.query(begin)
        await leaked.query('SELECT 1 FROM holdfast_locks LIMIT 1')
        clean.release()
        return () => leaked.release()
      }
      const giveBack = await leak()
      const lease = await holdfast.mutex(name).acquire()
      const clean = await pool.getConnection()
      giveBack()
      // Lent before the one that was leaked, which is left for the look at the claim.
      clean.release()
      expect(await store.guarded(lease, () => Promise.resolve('done'))).toBe('done')
      const giveBackAgain = await leak()
      await lease.release()
      giveBackAgain()
      for (let round = 0; round < 3; round++) {
        const seen = await store.inspect(name, 5000)
        const shown = 'kind' in seen ? seen.cause : seen.holders
        expect([expect.objectContaining({ code: 'HOLDFAST_AUTOCOMMIT' }), []]).toContainEqual(shown)
      }
      await holdfast.close()
      await pool.end()
    },
  )

  it.each(['BEGIN', 'SET autocommit = 0'])(
    'refuses one connection after %s, and leaves that alone',
    async (begin) => {
      const connection: Connection = await createConnection(server.url)
      const store = mysqlStore(connection)
      const name = `single ${(names += 1)}`
      await store.release(await held(store, name), undefined, 5000)
      await connection.query(begin)
      await connection.query('INSERT INTO entries VALUES (?)', [name])
      expect(await store.claim(request(name), 5000)).toMatchObject({ kind: 'unknown', retryable: false })
      await connection.query('COMMIT')
      const [rows] = await admin.query('SELECT 1 FROM entries WHERE line = ?', [name])
      expect(rows).toHaveLength(1)
      expect(await holdersOf(name)).toBe(0)
      await connection.end()
    },
  )

  // Once more on a machine so busy that it takes a second to say nothing.
  it(
    'guards at once, and with no deadlock, in transactions that have all connections of the pool',
    { retry: 2 },
    async () => {
      const pool = createPool({ uri: server.url, connectionLimit: 6 })
      const store = mysqlStore(pool)
      const holdfast = new Holdfast(store)
      const nobody = Array.from({ length: 6 })
      const leases = await Promise.all(nobody.map(() => holdfast.mutex(`order ${(names += 1)}`).acquire()))
      const all = await Promise.all(nobody.map(() => pool.getConnection()))
      await Promise.all(all.map((tx) => tx.beginTransaction()))
      const guarded = Promise.allSettled(
        leases.map(async (lease, index) => {
          await store.guard(lease, all[index] as PoolConnection)
          return 'guarded'
        }),
      )
      // A look for a connection that nobody can give took a second.
      const late = sleep(900).then(() => 'late')
      const expected = nobody.map(() => ({ status: 'fulfilled', value: 'guarded' }))
      try {
        expect(await Promise.race([guarded, late])).toEqual(expected)
      } finally {
        await guarded
        await Promise.all(all.map((tx) => tx.rollback()))
        for (const tx of all) tx.release()
        await holdfast.close({ drain: 0 })
        await pool.end()
      }
    },
  )

  it('guards a name in a new process beside a transaction that is guarded there, with no connection to spare', async () => {
    const mine = new Holdfast(mysqlStore(admin))
    const name = `shared ${(names += 1)}`
    const lease = await mine.semaphore(name, 2).acquire()
    const first = await admin.getConnection()
    await first.beginTransaction()
    await mysqlStore(admin).guard(lease, first)
    const pool = createPool({ uri: server.url, connectionLimit: 1 })
    const store = mysqlStore(pool)
    const holdfast = new Holdfast(store)
    const other = await holdfast.semaphore(name, 2).acquire()
    const second = await pool.getConnection()
    await second.query('SET innodb_lock_wait_timeout = 1')
    await second.beginTransaction()
    await expect(store.guard(other, second)).resolves.toBeUndefined()
    await second.commit()
    second.release()
    await first.commit()
    first.release()
    await holdfast.close({ drain: 0 })
    await mine.close({ drain: 0 })
    await pool.end()
  })

  it('guards no transaction on another server, though that has a table of locks, too', async () => {
    const other = await mariadb()
    const elsewhere = createPool({ uri: other.url })
    await mysqlStore(elsewhere).inspect('ready', 5000)
    const store = mysqlStore(admin)
    const holdfast = new Holdfast(store)
    const lease = await holdfast.mutex('shard 1').acquire()
    const tx = await elsewhere.getConnection()
    await tx.beginTransaction()
    const run = async (sql: string): Promise<unknown> => (await tx.query(sql))[0]
    for (const given of [tx, run]) {
      await expect(store.guard(lease, given)).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        argument: 'tx',
      })
    }
    await tx.rollback()
    tx.release()
    await holdfast.close()
    await elsewhere.end()
    await other.stop()
  })

  it('refuses a pool of another driver before it is used', () => {
    const mariadbPool = { getConnection: () => {}, query: () => {}, batch: () => {}, importFile: () => {} }
    expect(() => mysqlStore(mariadbPool as never)).toThrow(/driver mariadb/)
  })

  it('refuses a cluster of pools, whose servers would each give out locks of their own', () => {
    for (const cluster of [createPoolCluster(), createCallbackCluster()]) {
      expect(() => mysqlStore(cluster as never)).toThrow(/not a cluster/)
      expect(() => mysqlStore(cluster.of('*') as never)).toThrow(/not a cluster/)
    }
  })
})

async function held(store: Store, name: string): Promise<ReturnType<typeof request>> {
  const claim = request(name)
  expect(await store.claim(claim, 5000)).toMatchObject({ kind: 'held' })
  return claim
}
