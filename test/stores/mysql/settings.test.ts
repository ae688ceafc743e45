import { createRequire } from 'node:module'

import { createConnection as createCallbackConnection, createPool as createCallbackPool } from 'mysql2'
import { createConnection, createPool } from 'mysql2/promise'
import type { Connection, Pool, PoolOptions } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, mariadb, mysqlFlavour } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import type { Lease } from '../../../src/runtime/lease.ts'
import { fenced, mysqlSchema, mysqlStore, openMysqlStore } from '../../../src/stores/mysql/index.ts'
import { expectGuardedRun, someAtOnce } from '../sql/guarded-run.ts'
import { expectNothingGone } from '../sql/old-server.ts'
import { expectShortRun, request } from '../sql/short-run.ts'

const SETTINGS = [
  `sql_mode = 'NO_BACKSLASH_ESCAPES'`,
  `sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'`,
  `sql_mode = 'TRADITIONAL,ONLY_FULL_GROUP_BY,NO_UNSIGNED_SUBTRACTION'`,
  // MySQL knows neither.
  ...(mysqlFlavour === 'MySQL'
    ? []
    : [
        `sql_mode = 'SIMULTANEOUS_ASSIGNMENT'`,
        `sql_mode = 'ORACLE'`,
        `sql_mode = 'EMPTY_STRING_IS_NULL'`,
        `sql_mode = 'ORACLE,EMPTY_STRING_IS_NULL'`,
      ]),
  `sql_mode = ''`,
  `time_zone = '+05:30'`,
  `time_zone = '-11:00'`,
  `NAMES latin1`,
  `SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE`,
  `SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED`,
  `SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED`,
  `sql_safe_updates = 1`,
  `sql_select_limit = 0`,
  `sql_select_limit = 1`,
  `innodb_lock_wait_timeout = 1`,
  `completion_type = 'CHAIN'`,
  `completion_type = 'RELEASE'`,
]

const OPTIONS: PoolOptions[] = [
  { rowsAsArray: true },
  { namedPlaceholders: true },
  { nestTables: true },
  { supportBigNumbers: true, bigNumberStrings: true },
  { typeCast: () => 'nonsense' },
  { typeCast: false },
  { flags: ['-FOUND_ROWS'] },
  { charset: 'latin1' },
  { multipleStatements: true },
]

/** What the driver has compiled for rows that look alike it takes for every pool, whatever that one's options say. */
const { clearParserCache } = createRequire(import.meta.url)('mysql2') as { clearParserCache: () => void }

type Tell = (error: Error | null, statement: object) => void

const LITTLE_WEIGHT = 'optimizer_max_sel_arg_weight = 1500'

const ODD = `odd \\' " \` ; -- ? 日本 🔒`

describe.skipIf(!available('mariadb'))('the MySQL store', () => {
  let server: Server
  let admin: Connection
  let names = 0

  beforeAll(async () => {
    server = await mariadb()
    admin = await createConnection(server.url)
  })
  afterAll(async () => {
    await admin.end()
    await server.stop()
  })

  const withPool = async (options: PoolOptions, work: (pool: Pool) => Promise<void>): Promise<void> => {
    clearParserCache()
    const pool = createPool({ uri: server.url, connectionLimit: 1, ...options })
    try {
      await work(pool)
    } finally {
      await pool.end()
    }
  }

  it.each(SETTINGS)('does the same after SET %s', async (setting) => {
    const run = withPool({}, async (pool) => {
      await pool.query(`SET ${setting}`)
      await expectShortRun(mysqlStore(pool), `${ODD} ${(names += 1)}`)
    })
    await expect(run).resolves.toBeUndefined()
  })

  it.each(OPTIONS)('does the same with a pool that has %j', async (options) => {
    const run = withPool(options, (pool) => expectShortRun(mysqlStore(pool), `${ODD} ${(names += 1)}`))
    await expect(run).resolves.toBeUndefined()
  })

  it(
    'guards transactions after each SET, and with each option, at nobody’s cost',
    { timeout: 120_000 },
    async () => {
      const other = createPool({ uri: server.url, connectionLimit: 20 })
      const run = async (
        setting: string,
        options: PoolOptions,
        way: 'guarded' | 'guard',
      ): Promise<string[]> => {
        const pool = createPool({ uri: server.url, connectionLimit: 4, ...options })
        pool.pool.on('connection', (connection) => connection.query(`SET ${setting}`))
        const store = mysqlStore(pool)
        const guarded = async (lease: Lease, inside: () => Promise<void>): Promise<unknown> => {
          if (way === 'guarded') return store.guarded(lease, inside)
          const tx = await pool.getConnection()
          await tx.query('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE')
          await tx.beginTransaction()
          await store.guard(lease, tx)
          await inside()
          lease.assertHeld()
          await tx.commit()
          tx.release()
          return undefined
        }
        const what = `${way} ${setting} ${JSON.stringify(options)}`
        const name = `guarded ${(names += 1)}`
        const failed = await expectGuardedRun({ store, other: mysqlStore(other), name, guarded }).then(
          () => [],
          (error: unknown) => [`${what}: ${String(error)}`],
        )
        pool.pool.end()
        return failed
      }
      const runs = [
        ...SETTINGS.flatMap((setting) => [
          () => run(setting, {}, 'guarded'),
          () => run(setting, {}, 'guard'),
        ]),
        ...OPTIONS.map((options) => () => run('time_zone = DEFAULT', options, 'guarded')),
      ]
      expect(await someAtOnce(runs)).toEqual([])
      await other.end()
    },
  )

  it.each(SETTINGS)('shows names and forgets them after SET %s', async (setting) => {
    await withPool({ connectionLimit: 4 }, async (pool) => {
      pool.pool.on('connection', (connection) => connection.query(`SET ${setting}`))
      const table = `once_${(names += 1)}`
      const store = mysqlStore(pool, { table, keepIdle: 0 })
      await store.claim(request('held'), 5000)
      expect(await store.list({}, 5000)).toEqual({ names: ['held'] })
      for (let index = 0; index < 5; index++) {
        const claim = request(`once ${index}`)
        await store.claim(claim, 5000)
        await store.release(claim, undefined, 5000)
      }
      await new Promise((resolve) => setTimeout(resolve, 2))
      await store.tidy()
      const [rows] = await admin.query(`SELECT CAST(name AS CHAR) AS name FROM ${table}`)
      expect(rows).toEqual([{ name: 'held' }])
    })
  })

  describe('on a connection whose clock was set', () => {
    const refused = { kind: 'unknown', retryable: false, cause: { code: 'HOLDFAST_CLOCK' } }

    it.each(['- 3600', '+ 3600', '- 5'])('takes no lock: %s seconds', async (shift) => {
      await withPool({}, async (pool) => {
        await pool.query(`SET timestamp = UNIX_TIMESTAMP() ${shift}`)
        const store = mysqlStore(pool)
        expect(await store.claim(request('shifted'), 5000)).toMatchObject(refused)
        await pool.query('SET timestamp = DEFAULT')
        expect(await store.claim(request(`shifted ${(names += 1)}`), 5000)).toMatchObject({ kind: 'held' })
      })
    })

    it('notices it when the program had the connection meanwhile', async () => {
      await withPool({}, async (pool) => {
        const store = mysqlStore(pool)
        expect(await store.claim(request(`shifted ${(names += 1)}`), 5000)).toMatchObject({ kind: 'held' })
        await pool.query('SET timestamp = 1')
        await new Promise((resolve) => setTimeout(resolve, 1100))
        expect(await store.claim(request('shifted later'), 5000)).toMatchObject(refused)
      })
    })

    it('takes none on one connection alone either', async () => {
      const connection = await createConnection(server.url)
      await connection.query('SET timestamp = 1')
      expect(await mysqlStore(connection).claim(request('shifted'), 5000)).toMatchObject(refused)
      await connection.end()
    })

    it('asks for the clock once as long as nobody else uses the connection', async () => {
      await withPool({}, async (pool) => {
        const asked: string[] = []
        pool.pool.on('connection', (connection) => {
          const query = connection.query.bind(connection) as (sql: unknown, done: unknown) => unknown
          const spy = (sql: unknown, done: unknown): unknown => {
            const text = typeof sql === 'string' ? sql : (sql as { sql: string }).sql
            if (text.includes('SYSDATE')) asked.push(text)
            return query(sql, done)
          }
          Object.assign(connection, { query: spy })
        })
        const store = mysqlStore(pool)
        for (let round = 0; round < 12; round++) {
          const claim = request('asked')
          expect(await store.claim(claim, 5000)).toMatchObject({ kind: 'held' })
          await store.release(claim, undefined, 5000)
          await new Promise((resolve) => setTimeout(resolve, 100))
        }
        expect(asked).toHaveLength(1)
      })
    })
  })

  /** Takes and frees a name often enough for the connection to have the statements prepared; how often it used them. */
  const often = async (pool: Pool, name: string): Promise<number> => {
    const store = mysqlStore(pool)
    let last = 0n
    for (let round = 0; round < 20; round++) {
      const tokens = 1 + (round % 3) * 1000
      const claim = request(name, { owner: `host-${round}:1`, tokens, ttl: 60_000 + round })
      const answer = await store.claim(claim, 5000)
      if (answer.kind !== 'held') throw new Error(`round ${round}: ${answer.kind}`)
      expect(answer.token).toBeGreaterThan(last)
      last = answer.token + BigInt(tokens) - 1n
      const info = await store.inspect(name, 5000)
      if ('kind' in info) throw info.cause
      const [holder] = info.holders
      expect(info).toMatchObject({ capacity: 1, holders: [{ id: claim.id, owner: claim.owner, weight: 1 }] })
      expect(holder?.token).toBe(answer.token)
      expect(holder?.expiresIn).toBeGreaterThan(55_000)
      expect(holder?.expiresIn).toBeLessThanOrEqual(claim.ttl)
      const taken = await store.claim(request(name, { owner: 'other', whenBusy: 'try' }), 5000)
      expect(taken).toMatchObject({ kind: 'busy' })
      expect(await store.release(claim, undefined, 5000)).toEqual({ released: { kind: 'released' } })
      expect(await store.release(claim, undefined, 5000)).toEqual({ released: { kind: 'not-held' } })
    }
    await pool.query('SET sql_select_limit = DEFAULT')
    const [rows] = await pool.query({
      sql: `SHOW STATUS LIKE 'Com_stmt_execute'`,
      rowsAsArray: true,
      nestTables: false,
      typeCast: (_, next) => next(),
    })
    return Number((rows as unknown as string[][])[0]?.[1])
  }

  it.each(SETTINGS)('does the same with prepared statements after SET %s', async (setting) => {
    await withPool({}, async (pool) => {
      await pool.query(`SET ${setting}`)
      expect(await often(pool, `prepared ${(names += 1)}`)).toBeGreaterThan(20)
    })
  })

  it.each(OPTIONS)('does the same with prepared statements and a pool that has %j', async (options) => {
    await withPool(options, async (pool) => {
      expect(await often(pool, `prepared ${(names += 1)}`)).toBeGreaterThan(20)
    })
  })

  it('does without prepared statements where they are lost or refused', async () => {
    await withPool({ maxPreparedStatements: 1 }, async (pool) => {
      expect(await often(pool, 'few prepared')).toBeGreaterThan(0)
    })
    await withPool({}, async (pool) => {
      expect(await often(pool, 'reset')).toBeGreaterThan(20)
      const lent = await pool.getConnection()
      await lent.changeUser({ user: 'root' })
      lent.release()
      // Counted from the change on.
      expect(await often(pool, 'reset')).toBe(0)
    })
    await withPool({}, async (pool) => {
      const prepared: object[] = []
      pool.on('connection', (connection) => {
        const prepare = connection.prepare.bind(connection) as (sql: string, callback: Tell) => unknown
        const spy = (sql: string, callback: Tell): unknown =>
          prepare(sql, (error, statement) => {
            prepared.push(statement)
            callback(error, statement)
          })
        Object.assign(connection, { prepare: spy })
      })
      const before = await often(pool, 'forgotten')
      expect(prepared).toHaveLength(2)
      // Closed at the server, without the driver being told.
      for (const statement of prepared) {
        const { close } = Object.getPrototypeOf(statement) as { close: () => unknown }
        close.call(statement)
      }
      expect(await often(pool, 'forgotten')).toBe(before)
    })
    await admin.query('SET GLOBAL max_prepared_stmt_count = 0')
    try {
      await withPool({}, async (pool) => expect(await often(pool, 'none prepared')).toBe(0))
    } finally {
      await admin.query('SET GLOBAL max_prepared_stmt_count = 16382')
    }
  })

  it('takes a pool or connection with callbacks, and one connection alone', async () => {
    const pool = createCallbackPool(server.url)
    await expectShortRun(mysqlStore(pool), 'callback pool')
    pool.end()
    const callback = createCallbackConnection(server.url)
    await expectShortRun(mysqlStore(callback), 'callback connection')
    callback.end()
    const connection = await createConnection(server.url)
    const store = mysqlStore(connection)
    const runs = Promise.all(['a', 'b', 'c', 'd'].map((name) => expectShortRun(store, `connection ${name}`)))
    await expect(runs).resolves.toHaveLength(4)
    await connection.end()
  })

  it('says at once that a single connection is over', async () => {
    const connection = await createConnection(server.url)
    const store = mysqlStore(connection)
    expect(await store.inspect('over', 5000)).toMatchObject({ holders: [] })
    await connection.end()
    const ended = { kind: 'unknown', retryable: false, cause: { code: 'HOLDFAST_ENDED' } }
    expect(await store.claim(request('over'), 5000)).toMatchObject(ended)
  })

  it('says at once that the pool was ended', async () => {
    const pool = createPool(server.url)
    const store = mysqlStore(pool)
    expect(await store.inspect('ended', 5000)).toMatchObject({ holders: [] })
    await pool.end()
    const ended = { kind: 'unknown', retryable: false, cause: { code: 'HOLDFAST_ENDED' } }
    expect(await store.claim(request('ended'), 5000)).toMatchObject(ended)
  })

  it('refuses a connection without autocommit rather than to grant what is not committed', async () => {
    await withPool({}, async (pool) => {
      await mysqlStore(pool).inspect('x', 5000)
      await pool.query('SET autocommit = 0')
      const answer = await mysqlStore(pool).claim(request('no autocommit'), 5000)
      expect(answer).toMatchObject({
        kind: 'unknown',
        retryable: false,
        cause: { code: 'HOLDFAST_AUTOCOMMIT' },
      })
      const [rows] = await admin.query(`SELECT claim FROM holdfast_locks WHERE name = 'no autocommit'`)
      expect(rows).toEqual([])
    })
  })

  it('keeps names apart that a collation would not', async () => {
    await withPool({}, async (pool) => {
      const store = mysqlStore(pool)
      for (const name of ['case', 'CASE', 'case ', 'cäse', 'case\u0301', 'ſ', 's']) {
        expect(await store.claim(request(name, { whenBusy: 'try' }), 5000)).toMatchObject({ kind: 'held' })
      }
    })
  })

  it('shows a person who holds what with one SELECT', async () => {
    await withPool({}, async (pool) => {
      await mysqlStore(pool).claim(request('readable', { owner: 'host-1:4711' }), 5000)
      const [rows] = await admin.query(
        `SELECT CONVERT(name USING utf8mb4) AS name, owner, token, FROM_UNIXTIME(expires_us / 1000000) > NOW() AS held
         FROM holdfast_locks WHERE name = 'readable'`,
      )
      expect(rows).toMatchObject([{ name: 'readable', owner: 'host-1:4711', held: 1 }])
    })
  })

  it('does without the right to create tables, in a schema and table of one’s choice', async () => {
    await admin.query('CREATE DATABASE elsewhere')
    await admin.query(`CREATE USER locker@'%' IDENTIFIED BY 'hush-hush'`)
    await admin.query(mysqlSchema({ schema: 'elsewhere', table: 'our_locks' }))
    await admin.query(`GRANT SELECT, INSERT, UPDATE ON elsewhere.our_locks TO locker@'%'`)
    const url = server.url.replace('root@', 'locker:hush-hush@').replace('/test', '')
    const options = { schema: 'elsewhere', table: 'our_locks', migrate: false }
    const store = await openMysqlStore(url, options)
    await expectShortRun(store, 'elsewhere')
    const said = await openMysqlStore(`${url}?schema=elsewhere&table=our_locks`, { migrate: false })
    await expectShortRun(said, 'elsewhere')
    await said.close()
    const holdfast = new Holdfast(store)
    const work = (lease: Lease): Promise<string> => store.guarded(lease, () => Promise.resolve('done'))
    await expect(holdfast.mutex('elsewhere').run(work)).resolves.toBe('done')
    await holdfast.close()
    await store.close()
    const refused = await openMysqlStore(url, { ...options, table: 'no_such_locks' }).catch(
      (error: unknown) => error,
    )
    expect(refused).toMatchObject({ code: 'STORE_UNAVAILABLE', cause: { code: 'HOLDFAST_SCHEMA' } })
    expect(JSON.stringify(refused) + String(refused)).not.toContain('hush-hush')
  })

  it('forgets names in a schema of one’s choice, on connections without a database or with another', async () => {
    await admin.query('CREATE DATABASE tidied')
    for (const url of [server.url.replace('/test', '/'), server.url]) {
      const store = await openMysqlStore(url, { schema: 'tidied' })
      const claim = request('tidied')
      await store.claim(claim, 5000)
      await store.release(claim, undefined, 5000)
      expect(await store.tidy({ idle: 0 })).toEqual({ looked: 1, removed: 1 })
      await store.close()
    }
  })

  it.each(['pool', 'pool without one', 'callbacks'])(
    'has one table, whatever database a program has left a connection in: %s',
    async (kind) => {
      const table = `lost_${(names += 1)}`
      await admin.query('CREATE DATABASE IF NOT EXISTS tenant_a')
      await admin.query('CREATE DATABASE IF NOT EXISTS tenant_b')
      const url = new URL(server.url)
      if (kind === 'pool without one') url.pathname = ''
      const pools = ['a', 'b'].map((tenant) => {
        const callbacks = createCallbackPool({ uri: url.href, connectionLimit: 1 })
        const pool = callbacks.promise()
        const store = mysqlStore(kind === 'callbacks' ? callbacks : pool, { table })
        return { pool, store, home: `tenant_${tenant}` }
      })
      const [first, second] = pools
      if (first === undefined || second === undefined) throw new Error('two pools')
      // Without a database of its own, the first that a connection uses has to do.
      for (const { pool, home } of pools)
        await pool.query(`USE ${kind === 'pool without one' ? 'tenant_a' : home}`)
      const claim = request('seat')
      expect(await first.store.claim(claim, 5000)).toMatchObject({ kind: 'held' })
      expect(await second.store.claim(request('seat'), 5000)).toMatchObject({ kind: 'queued' })
      for (const { pool } of pools) await pool.query('USE tenant_b')
      expect(await first.store.renew([{ ...claim, tokens: 0 }], 5000)).toMatchObject([{ kind: 'renewed' }])
      expect(await second.store.inspect('seat', 5000)).toMatchObject({ holders: [{ id: claim.id }] })
      const [rows] = await admin.query('SELECT 1 FROM information_schema.tables WHERE table_name = ?', [
        table,
      ])
      expect(rows).toHaveLength(1)
      await Promise.all(pools.map(({ pool }) => pool.end()))
    },
  )

  it.each(['options of the pool', 'user of a connection'])(
    'has one table when the pool’s owner changes the database later: %s',
    async (how) => {
      await admin.query('CREATE DATABASE IF NOT EXISTS later')
      const table = `later_${(names += 1)}`
      const callbacks = createCallbackPool({ uri: server.url, connectionLimit: 2 })
      const pool = callbacks.promise()
      const store = mysqlStore(callbacks, { table })
      const claim = request('seat')
      expect(await store.claim(claim, 5000)).toMatchObject({ kind: 'held' })
      const kept = await pool.getConnection()
      if (how.startsWith('user')) await kept.changeUser({ database: 'later' })
      else
        Object.assign((callbacks.config as { connectionConfig?: object }).connectionConfig ?? {}, {
          database: 'later',
        })
      if (how.startsWith('user')) kept.release()
      // On one that is new, or that was changed.
      const [[now]] = (await pool.query('SELECT DATABASE() AS name')) as unknown as [[{ name: string }]]
      expect(now.name).toBe('later')
      expect(await store.claim(request('seat'), 5000)).toMatchObject({ kind: 'queued' })
      expect(await store.renew([{ ...claim, tokens: 0 }], 5000)).toMatchObject([{ kind: 'renewed' }])
      if (!how.startsWith('user')) kept.release()
      await pool.end()
    },
  )

  it('tells a wrong password at once, and does not repeat it', async () => {
    const url = server.url.replace('root@', 'root:wrong-secret@')
    const refused: unknown = await openMysqlStore(url).catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 'STORE_UNAVAILABLE', cause: { code: 'ER_ACCESS_DENIED_ERROR' } })
    expect(JSON.stringify(refused) + String((refused as Error).stack)).not.toContain('wrong-secret')
    await expect(openMysqlStore('mysql://root:wrong-secret@:bad:port/')).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.not.stringContaining('wrong-secret') as unknown,
    })
  })

  it('refuses names of tables that are none, and a table of a later version', async () => {
    await withPool({}, async (pool) => {
      expect(() => mysqlStore(pool, { table: 'a`; DROP TABLE x' })).toThrow(/table must be a name/)
      await admin.query(mysqlSchema({ table: 'later' }).replace('holdfast schema 1', 'holdfast schema 2'))
      expect(await mysqlStore(pool, { table: 'later' }).inspect('x', 5000)).toMatchObject({
        kind: 'unknown',
        retryable: false,
      })
    })
  })

  it('answers by its deadline, and sends nothing later, when the pool is used up', async () => {
    await withPool({}, async (pool) => {
      const taken = await pool.getConnection()
      const began = performance.now()
      const answer = await mysqlStore(pool).claim(request('late'), 200)
      expect(answer).toMatchObject({ kind: 'unknown' })
      expect(performance.now() - began).toBeLessThan(5000)
      taken.release()
      await pool.query('SELECT 1')
      const [rows] = await admin.query(`SELECT claim FROM holdfast_locks WHERE name = 'late'`)
      expect(rows).toEqual([])
    })
  })

  it('does not take the word of a server that only reads for it that a claim is gone', async () => {
    await admin.query(`CREATE USER guest@'127.0.0.1'`)
    await admin.query(`GRANT ALL ON test.* TO guest@'127.0.0.1'`)
    const url = new URL(server.url)
    url.username = 'guest'
    const run = withPool({ uri: url.href }, async (pool) => {
      const spoil = async (): Promise<void> => void (await admin.query('SET GLOBAL read_only = 1'))
      await expectNothingGone(mysqlStore(pool), spoil)
    })
    await expect(run).resolves.toBeUndefined()
    await admin.query('SET GLOBAL read_only = 0')
  })

  it('uses no connection twice that leads to a server that only reads, as after a failover', async () => {
    await admin.query(`CREATE USER app@'127.0.0.1'`)
    await admin.query(`GRANT ALL ON test.* TO app@'127.0.0.1'`)
    const url = new URL(server.url)
    url.username = 'app'
    await withPool({ uri: url.href }, async (pool) => {
      const store = mysqlStore(pool)
      const claim = request('moved')
      const me = async (): Promise<unknown> => (await pool.query('SELECT CONNECTION_ID() AS id'))[0]
      expect(await store.claim(claim, 5000)).toMatchObject({ kind: 'held' })
      const before = await me()
      await admin.query('SET GLOBAL read_only = 1')
      const answer = store.renew([{ ...claim, tokens: 0 }], 5000)
      expect(await answer).toMatchObject([
        { kind: 'unknown', cause: { code: 'ER_OPTION_PREVENTS_STATEMENT' } },
      ])
      await admin.query('SET GLOBAL read_only = 0')
      expect(await me()).not.toEqual(before)
      expect(await store.renew([{ ...claim, tokens: 0 }], 5000)).toMatchObject([{ kind: 'renewed' }])

      const holdfast = new Holdfast(store)
      const lease = await holdfast.mutex('moved too').acquire()
      const used: unknown[] = []
      const work = (): Promise<unknown> =>
        store.guarded(lease, async (tx) => {
          used.push((await tx.query('SELECT CONNECTION_ID() AS id'))[0])
          await tx.query('UPDATE holdfast_locks SET version = version WHERE name = ?', ['none'])
        })
      await work()
      await admin.query('SET GLOBAL read_only = 1')
      await expect(work()).rejects.toMatchObject({ code: 'ER_OPTION_PREVENTS_STATEMENT' })
      await admin.query('SET GLOBAL read_only = 0')
      await work()
      expect(used[0]).toEqual(used[1])
      expect(used[2]).not.toEqual(used[1])
      await lease.release()
      await holdfast.close()
    })
  })

  it('writes with a token to a table of the user’s, whatever a pool makes of values', async () => {
    await admin.query('CREATE TABLE fenced_seat (id int PRIMARY KEY, fence bigint)')
    await admin.query('INSERT INTO fenced_seat VALUES (7, NULL)')
    for (const options of OPTIONS) {
      await admin.query('UPDATE fenced_seat SET fence = NULL')
      await withPool(options, async (pool) => {
        const seats = fenced(pool, { table: 'fenced_seat', key: 'id' })
        expect(await seats.update(7, 20n, {})).toBe('written')
        expect(await seats.update(7, 20n, {})).toBe('written')
        expect(await seats.update(7, 19n, {})).toBe('stale')
      })
    }
  })

  it('renews more leases than the server looks up by their keys in a statement, and locks no other row', async () => {
    const few = mysqlFlavour === 'MySQL' ? 'range_optimizer_max_mem_size = 400000' : LITTLE_WEIGHT
    await withPool({}, async (pool) => {
      const store = mysqlStore(pool)
      const claims = Array.from({ length: 3000 }, (_, index) => request(`many ${index}`, { tokens: 0 }))
      await store.claim(request('many others'), 5000)
      await admin.query(
        `INSERT INTO holdfast_locks (name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us)
        VALUES ${claims.map(({ name, id }) => `('${name}', 1, 1, 1, 0, '${id}', 'o', 1, 1, 1, 1 << 52)`).join()}`,
      )
      await pool.query(`SET ${few}`)
      await admin.query('START TRANSACTION')
      await admin.query(`SELECT 1 FROM holdfast_locks WHERE name = 'many others' FOR UPDATE`)
      const renewed = await store.renew(claims, 10_000)
      await admin.query('ROLLBACK')
      expect(new Set(renewed.map(({ kind }) => kind))).toEqual(new Set(['renewed']))
      await admin.query(`DELETE FROM holdfast_locks WHERE name LIKE 'many %'`)
    })
  })

  it('uses no connection twice on which a program has left tables locked', async () => {
    await admin.query('CREATE TABLE left_locked (id int)')
    await withPool({}, async (pool) => {
      const store = mysqlStore(pool)
      const claim = request('locked out')
      expect(await store.claim(claim, 5000)).toMatchObject({ kind: 'held' })
      for (const how of ['READ', 'WRITE']) {
        await pool.query(`LOCK TABLES left_locked ${how}`)
        expect(await store.renew([{ ...claim, tokens: 0 }], 5000)).toMatchObject([
          { kind: 'unknown', cause: { code: 'ER_TABLE_NOT_LOCKED' } },
        ])
        expect(await store.renew([{ ...claim, tokens: 0 }], 5000)).toMatchObject([{ kind: 'renewed' }])
      }
      await pool.query('LOCK TABLES holdfast_locks READ')
      expect(await store.renew([{ ...claim, tokens: 0 }], 5000)).toMatchObject([
        { kind: 'unknown', cause: { code: 'ER_TABLE_NOT_LOCKED_FOR_WRITE' } },
      ])
      expect(await store.renew([{ ...claim, tokens: 0 }], 5000)).toMatchObject([{ kind: 'renewed' }])
    })
  })

  it('gives no connection back that still owes an answer', async () => {
    await withPool({}, async (pool) => {
      const store = mysqlStore(pool)
      const claim = request('owed')
      await store.claim(claim, 5000)
      await admin.query('START TRANSACTION')
      await admin.query(`SELECT 1 FROM holdfast_locks WHERE name = 'owed' FOR UPDATE`)
      expect(await store.release(claim, undefined, 200)).toMatchObject({ released: { kind: 'unknown' } })
      // The only connection of the pool was in the middle of that; its place is free for another.
      const [rows] = await pool.query('SELECT 42 AS answer')
      expect(rows).toMatchObject([{ answer: 42 }])
      await admin.query('ROLLBACK')
    })
  })
})
