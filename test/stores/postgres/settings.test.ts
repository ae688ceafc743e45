import { Client, Pool } from 'pg'
import type { PoolConfig, QueryConfig } from 'pg'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'

import { available, pgbouncer, postgres } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import type { StoreEvent } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import type { Lease } from '../../../src/runtime/lease.ts'
import {
  fenced,
  openPostgresStore,
  postgresSchema,
  postgresStore,
} from '../../../src/stores/postgres/index.ts'
import type { PostgresClient } from '../../../src/stores/postgres/client.ts'
import { PostgresSqlStore } from '../../../src/stores/postgres/store.ts'
import { expectGuardedRun, someAtOnce } from '../sql/guarded-run.ts'
import { expectNothingGone } from '../sql/old-server.ts'
import { expectShortRun, request } from '../sql/short-run.ts'

const ODD = `odd \\' " \` ; -- $1 日本 🔒`

describe.skipIf(!available('postgres'))('the PostgreSQL store', () => {
  let server: Server
  let admin: Client
  let names = 0

  beforeAll(async () => {
    server = await postgres()
    admin = new Client({ connectionString: server.url })
    admin.on('error', () => {})
    await admin.connect()
  })
  afterAll(async () => {
    await admin.end()
    await server.stop()
  })

  const withPool = async (work: (pool: Pool) => Promise<void>, config: PoolConfig = {}): Promise<void> => {
    const pool = new Pool({ connectionString: server.url, max: 4, ...config })
    pool.on('error', () => {})
    try {
      await work(pool)
    } finally {
      await pool.end()
    }
  }

  it('leaves the program its connections as they were when it may not make its table', async () => {
    await admin.query('CREATE ROLE guest LOGIN')
    await admin.query('REVOKE CREATE ON SCHEMA public FROM PUBLIC')
    const url = new URL(server.url)
    url.username = 'guest'
    await withPool(
      async (pool) => {
        const holdfast = new Holdfast(postgresStore(pool, { table: 'forbidden_locks' }))
        await expect(holdfast.mutex('a').acquire({ wait: 500 })).rejects.toMatchObject({
          cause: { message: expect.stringContaining('permission denied') as string },
        })
        await holdfast.close({ timeout: 500 })
        const own = Array.from({ length: 4 }, () => pool.query('SELECT 1 AS one'))
        for (const { rows } of await Promise.all(own)) expect(rows).toEqual([{ one: 1 }])
      },
      { connectionString: url.href },
    )
  })

  it('says at once that a single client was never connected, or is over', async () => {
    const client = new Client({ connectionString: server.url })
    const store = postgresStore(client)
    const final = (code: string): object => ({ kind: 'unknown', retryable: false, cause: { code } })
    expect(await store.claim(request('over'), 5000)).toMatchObject(final('HOLDFAST_NOT_CONNECTED'))
    await client.connect()
    expect(await store.claim(request('over'), 5000)).toMatchObject({ kind: 'held' })
    await client.end()
    expect(await store.inspect('over', 5000)).toMatchObject(final('HOLDFAST_ENDED'))
  })

  it('says at once that the pool was ended', async () => {
    const pool = new Pool({ connectionString: server.url })
    const store = postgresStore(pool)
    expect(await store.inspect('ended', 5000)).toMatchObject({ holders: [] })
    await pool.end()
    const ended = { kind: 'unknown', retryable: false, cause: { code: 'HOLDFAST_ENDED' } }
    expect(await store.claim(request('ended'), 5000)).toMatchObject(ended)
  })

  const SETTINGS = [
    `-c default_transaction_isolation=serializable`,
    `-c default_transaction_isolation=repeatable\\ read`,
    `-c timezone=America/New_York`,
    `-c standard_conforming_strings=off`,
    `-c statement_timeout=5000`,
    `-c lock_timeout=500`,
    `-c search_path=public,pg_catalog`,
    `-c bytea_output=escape`,
    `-c plan_cache_mode=force_generic_plan`,
  ]

  it.each(SETTINGS)('does the same with %s', async (options) => {
    const run = withPool((pool) => expectShortRun(postgresStore(pool), `${ODD} ${(names += 1)}`), { options })
    await expect(run).resolves.toBeUndefined()
  })

  it('guards transactions with each setting, at nobody’s cost', { timeout: 60_000 }, async () => {
    const other = new Pool({ connectionString: server.url, max: 8 })
    const run = async (config: PoolConfig): Promise<string[]> => {
      const pool = new Pool({ connectionString: server.url, max: 4, ...config })
      pool.on('error', () => {})
      const store = postgresStore(pool)
      const failed = await expectGuardedRun({
        store,
        other: postgresStore(other),
        name: `guarded ${(names += 1)}`,
        guarded: (lease, inside) => store.guarded(lease, inside),
      }).then(
        () => [],
        (error: unknown) => [`${JSON.stringify(config)}: ${String(error)}`],
      )
      await pool.end()
      return failed
    }
    const configs: PoolConfig[] = [
      ...SETTINGS.map((options) => ({ options })),
      { binary: true } as PoolConfig,
    ]
    expect(await someAtOnce(configs.map((config) => () => run(config)))).toEqual([])
    await other.end()
  })

  /** As Kysely with ParseJSONResultsPlugin, and others. */
  const parsed = (rows: Record<string, unknown>[]): Record<string, unknown>[] =>
    rows.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([key, value]) => [
          key,
          typeof value === 'string' && /^[[{]/.test(value) ? JSON.parse(value) : value,
        ]),
      ),
    )

  it.each(['a plain name', '{ "like": "JSON" }', '[1]'])(
    'guards by a function that makes objects of texts, on %s',
    async (name) => {
      await withPool(async (pool) => {
        const store = postgresStore(pool)
        const holdfast = new Holdfast(store)
        const lease = await holdfast.mutex(name).acquire()
        await store.claim(request(name), 5000)
        const tx = await pool.connect()
        await tx.query('BEGIN')
        const run = async (text: string, values: unknown[]): Promise<unknown> =>
          parsed((await tx.query(text, values)).rows as Record<string, unknown>[])
        await expect(store.guard(lease, run)).resolves.toBeUndefined()
        await tx.query('COMMIT')
        tx.release()
        await lease.release()
        await holdfast.close()
      })
    },
  )

  it('keeps permits and readers when a column’s type is changed', async () => {
    const table = 'altered'
    await withPool(async (pool) => {
      await withPool(async (second) => {
        const stores = [pool, second].map((one) => postgresStore(one, { table }))
        const claims = stores.map(() => request('s', { capacity: 5 }))
        const renewAll = async (): Promise<string[]> => {
          const kinds: string[] = []
          for (const [index, store] of stores.entries()) {
            const [answer] = await store.renew([claims[index] ?? request('s')], 5000)
            kinds.push(answer?.kind ?? 'none')
          }
          return kinds
        }
        for (const [index, store] of stores.entries()) {
          expect(await store.claim(claims[index] ?? request('s'), 5000)).toMatchObject({ kind: 'held' })
        }
        for (const type of ['varchar(300)', 'varchar(400)', 'text']) {
          expect(await renewAll()).toEqual(['held', 'held'])
          await admin.query(`ALTER TABLE ${table} ALTER COLUMN owner TYPE ${type}`)
          for (let round = 0; round < 3; round++) expect(await renewAll()).toEqual(['held', 'held'])
        }
        const { rows } = await pool.query('SELECT count(*)::int FROM pg_prepared_statements')
        expect((rows as { count: number }[])[0]?.count).toBeGreaterThan(0)
      })
    })
  })

  it('keeps no connection for those who gave up waiting for it', async () => {
    await withPool(
      async (pool) => {
        const store = postgresStore(pool)
        await store.inspect('busy', 5000)
        const busy = await Promise.all([pool.connect(), pool.connect()])
        expect(await store.watch('nobody-waits', () => {}, 100)).toMatchObject({ kind: 'unknown' })
        for (const client of busy) client.release()
        await expect.poll(() => [pool.waitingCount, pool.totalCount - pool.idleCount]).toEqual([0, 0])
        await store.close()
      },
      { max: 2 },
    )
  })

  it.each(['read committed', 'repeatable read', 'serializable'])(
    'writes with tokens at once, whatever the isolation: %s',
    async (level) => {
      const options = `-c default_transaction_isolation=${level.replace(' ', '\\ ')}`
      await withPool(
        async (pool) => {
          const table = `fenced_${(names += 1)}`
          await pool.query(`CREATE TABLE ${table} (id int PRIMARY KEY, owner text, fence bigint)`)
          await pool.query(`INSERT INTO ${table} VALUES (7, 'free', 0)`)
          const seats = fenced(pool, { table, key: 'id' })
          for (let round = 1; round <= 10; round++) {
            const tokens = Array.from({ length: 10 }, (_, index) => BigInt(round * 10 + index))
            const results = await Promise.all(
              tokens.map((token) => seats.update(7, token, { owner: `${token}` })),
            )
            expect(results.at(-1)).toBe('written')
            const { rows } = await pool.query(`SELECT owner, fence FROM ${table}`)
            expect(rows).toEqual([{ owner: `${tokens.at(-1)}`, fence: `${tokens.at(-1)}` }])
          }
        },
        { options, max: 10 },
      )
    },
  )

  it('counts right when every transaction is serializable', async () => {
    const options = '-c default_transaction_isolation=serializable'
    await withPool(
      async (pool) => {
        const holdfasts = [1, 2, 3].map(() => new Holdfast(postgresStore(pool)))
        let count = 0
        const add = async (holdfast: Holdfast): Promise<void> => {
          for (let round = 0; round < 10; round++) {
            await holdfast.mutex('serializable').run(async () => {
              const seen = count
              await new Promise((resolve) => setTimeout(resolve, 1))
              count = seen + 1
            })
          }
        }
        await Promise.all(holdfasts.flatMap((holdfast) => [add(holdfast), add(holdfast)]))
        expect(count).toBe(60)
        await Promise.all(holdfasts.map((holdfast) => holdfast.close()))
      },
      { options, max: 8 },
    )
  })

  it('does the same when a program has its own idea of big integers', async () => {
    pg.types.setTypeParser(20, () => 'nonsense')
    pg.types.setTypeParser(25, () => 'nonsense')
    try {
      const run = withPool((pool) => expectShortRun(postgresStore(pool), `${ODD} ${(names += 1)}`))
      await expect(run).resolves.toBeUndefined()
    } finally {
      pg.types.setTypeParser(20, (text) => text)
      pg.types.setTypeParser(25, (text) => text)
    }
  })

  it.each<Record<string, unknown>>([
    { binary: true },
    { query_timeout: 5000 },
    { pipeline: true },
    { binary: true, pipeline: true },
  ])('does the same with a pool that has %j', async (config) => {
    const run = withPool((pool) => expectShortRun(postgresStore(pool), `${ODD} ${(names += 1)}`), config)
    await expect(run).resolves.toBeUndefined()
  })

  it('does the same with a pool that makes something else of all that it reads', async () => {
    await withPool(
      async (pool) => {
        const store = postgresStore(pool)
        const watch = await store.watch('session', () => {}, 5000)
        expect(watch).toMatchObject({ kind: 'watching' })
        await expectShortRun(store, `${ODD} ${(names += 1)}`)
        await store.close()
      },
      { types: { getTypeParser: () => () => ({ never: 'a number' }) } as PoolConfig['types'] },
    )
  })

  it('takes a client that only looks like one of pg', async () => {
    const client = new Client({ connectionString: server.url })
    await client.connect()
    const lookalike = {
      query: (query: QueryConfig) => client.query(query),
      on: client.on.bind(client),
      removeListener: client.removeListener.bind(client),
    }
    const run = expectShortRun(postgresStore(lookalike as PostgresClient), `${ODD} ${(names += 1)}`)
    await expect(run).resolves.toBeUndefined()
    await client.end()
  })

  it('has a connection parse each statement once, also one that failed', async () => {
    const sent = vi.spyOn(Client.prototype, 'query')
    await withPool(
      async (pool) => {
        const store = postgresStore(pool)
        const claim = request('parsed')
        await store.claim(claim, 5000)
        await admin.query('BEGIN')
        await admin.query(`SELECT 1 FROM holdfast_locks WHERE name = 'parsed' FOR UPDATE`)
        sent.mockClear()
        const released = store.release(claim, undefined, 5000)
        // The server gives up waiting for the row again and again, and each time it is asked again.
        await vi.waitFor(() => expect(sent.mock.calls.length).toBeGreaterThan(2), 5000)
        await admin.query('ROLLBACK')
        expect(await released).toEqual({ released: { kind: 'released' } })
        for (let round = 0; round < 5; round++) {
          await store.claim(claim, 5000)
          await store.release(claim, undefined, 5000)
        }
        const { rows } = await pool.query(`SELECT count(*)::int FROM pg_prepared_statements
          WHERE name LIKE 'holdfast%' AND generic_plans + custom_plans > 4`)
        expect(rows).toEqual([{ count: 2 }])
      },
      { max: 1, options: '-c lock_timeout=20' },
    )
    sent.mockRestore()
  })

  it('takes one client alone, and listens on it', async () => {
    const client = new Client({ connectionString: server.url })
    await client.connect()
    const store = postgresStore(client)
    await Promise.all(['a', 'b', 'c'].map((name) => expectShortRun(store, `client ${name}`)))
    const [first, second] = [request('client', { id: 'one.1' }), request('client', { id: 'two.1' })]
    const heard: StoreEvent[] = []
    const watch = await store.watch('two', (event) => heard.push(event), 5000)
    await store.claim(first, 5000)
    await store.claim(second, 5000)
    await store.release(first, undefined, 5000)
    await vi.waitFor(() => expect(heard).toMatchObject([{ kind: 'granted', id: 'two.1' }]))
    if (watch.kind === 'watching') watch.stop()
    await client.end()
  })

  it('uses one connection to listen for any number of waiters, and gives it back', async () => {
    await withPool(async (pool) => {
      const [waiter, holder] = [
        new Holdfast(postgresStore(pool)),
        new Holdfast(postgresStore(pool, { listen: false })),
      ]
      const held = await Promise.all(['l1', 'l2', 'l3', 'l4'].map((name) => holder.mutex(name).acquire()))
      const waiting = Promise.all(held.map(({ name }) => waiter.mutex(name).acquire()))
      await vi.waitFor(async () => expect((await holder.inspect('l4')).waiters).toHaveLength(1))
      await vi.waitFor(() => expect(pool.totalCount - pool.idleCount).toBe(1))
      for (const lease of held) await lease.release()
      await waiting
      await waiter.close({ drain: 0 })
      await vi.waitFor(() => expect(pool.totalCount - pool.idleCount).toBe(0))
      await holder.close()
    })
  })

  it('listens again when the connection breaks, and says that something may have been missed', async () => {
    await withPool(async (pool) => {
      const store = postgresStore(pool)
      const heard: StoreEvent[] = []
      const watch = await store.watch('broken', (event) => heard.push(event), 5000)
      await admin.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND pid <> pg_backend_pid()`,
      )
      await vi.waitFor(() => expect(heard).toEqual([{ kind: 'gap' }]), 10_000)
      await admin.query('NOTIFY "holdfast_broken", \'{"kind":"contended","name":"n","id":"broken.1"}\'')
      await vi.waitFor(() => expect(heard[1]).toEqual({ kind: 'contended', name: 'n', id: 'broken.1' }))
      if (watch.kind === 'watching') watch.stop()
    })
  })

  it.each(['x', 'null', '{"kind":"granted"}', '{"kind":"granted","token":"x"}'])(
    'takes %s, which a stranger says on its channel, for nothing',
    async (said) => {
      await withPool(async (pool) => {
        const heard: StoreEvent[] = []
        const watch = await postgresStore(pool).watch('told', (event) => heard.push(event), 5000)
        await admin.query('SELECT pg_notify($1, $2)', ['holdfast_told', said])
        await admin.query('NOTIFY "holdfast_told", \'{"kind":"gap"}\'')
        await vi.waitFor(() => expect(heard).toEqual([{ kind: 'gap' }]))
        if (watch.kind === 'watching') watch.stop()
      })
    },
  )

  it('listens with one connection for all stores on a pool, until the last of them is closed', async () => {
    await withPool(async (pool) => {
      const stores = ['a', 'b', 'c'].map((table) => postgresStore(pool, { table: `tenant_${table}` }))
      const heard: string[] = []
      for (const [index, store] of stores.entries()) {
        const watch = await store.watch(`tenant${index}`, ({ kind }) => heard.push(`${index} ${kind}`), 5000)
        expect(watch.kind).toBe('watching')
      }
      const used = (): number => pool.totalCount - pool.idleCount
      expect(used()).toBe(1)
      await stores[0]?.close()
      await stores[1]?.close()
      expect(used()).toBe(1)
      for (const index of [0, 1, 2]) await admin.query(`NOTIFY "holdfast_tenant${index}", '{"kind":"gap"}'`)
      await vi.waitFor(() => expect(heard).toEqual(['2 gap']))
      await stores[2]?.close()
      await vi.waitFor(() => expect(used()).toBe(0))
    })
  })

  it('polls with a pool of one connection, which it needs for everything else', async () => {
    await withPool(
      async (pool) => {
        const store = postgresStore(pool)
        expect(store.capabilities.wakeups).toBe('poll')
        const [a, b] = [new Holdfast(store), new Holdfast(store)]
        const lease = await a.mutex('one connection').acquire()
        const next = b.mutex('one connection').acquire()
        await lease.release()
        await (await next).release()
        await Promise.all([a.close(), b.close()])
      },
      { max: 1 },
    )
  })

  it('sends no message when nobody waits', async () => {
    await withPool(async (pool) => {
      const store = postgresStore(pool)
      const heard: StoreEvent[] = []
      const watch = await store.watch('quiet', (event) => heard.push(event), 5000)
      const claim = request('quiet', { id: 'quiet.1' })
      for (let round = 0; round < 5; round++) {
        await store.claim(claim, 5000)
        await store.renew([{ ...claim, tokens: 0 }], 5000)
        await store.release(claim, undefined, 5000)
      }
      // What was sent before this has arrived before it.
      await admin.query('NOTIFY "holdfast_quiet", \'{"kind":"gap"}\'')
      await vi.waitFor(() => expect(heard).toEqual([{ kind: 'gap' }]))
      if (watch.kind === 'watching') watch.stop()
    })
  })

  it('does without the right to create tables, in a schema and table of one’s choice', async () => {
    await admin.query('CREATE SCHEMA elsewhere')
    await admin.query(`CREATE ROLE locker LOGIN PASSWORD 'hush-hush'`)
    await admin.query(postgresSchema({ schema: 'elsewhere', table: 'our_locks' }))
    await admin.query('GRANT USAGE ON SCHEMA elsewhere TO locker')
    await admin.query('GRANT SELECT, INSERT, UPDATE ON elsewhere.our_locks TO locker')
    const url = server.url.replace('postgres@', 'locker:hush-hush@')
    const options = { schema: 'elsewhere', table: 'our_locks', migrate: false }
    const store = await openPostgresStore(url, options)
    await expectShortRun(store, 'elsewhere')
    const said = await openPostgresStore(`${url}?schema=elsewhere&table=our_locks`, { migrate: false })
    await expectShortRun(said, 'elsewhere')
    await said.close()
    const holdfast = new Holdfast(store)
    const work = (lease: Lease): Promise<string> => store.guarded(lease, () => Promise.resolve('done'))
    await expect(holdfast.mutex('elsewhere').run(work)).resolves.toBe('done')
    await holdfast.close()
    await store.close()
    const refused: unknown = await openPostgresStore(url, { ...options, table: 'none' }).catch(
      (error: unknown) => error,
    )
    expect(refused).toMatchObject({ code: 'STORE_UNAVAILABLE', cause: { code: 'HOLDFAST_SCHEMA' } })
    expect(JSON.stringify(refused) + String(refused)).not.toContain('hush-hush')
  })

  it('takes a URL whose host stands behind the question mark, as that of a socket', async () => {
    const { hostname, port } = new URL(server.url)
    const url = `postgres://postgres:secret@/postgres?host=${hostname}&table=our_own&port=${port}`
    const store = await openPostgresStore(url)
    await expectShortRun(store, 'host behind')
    await store.close()
    const { rows } = await admin.query(`SELECT to_regclass('our_own') IS NOT NULL AS made`)
    expect(rows).toEqual([{ made: true }])
    await expect(openPostgresStore('postgres://ann:hunter2@:x/db?host=/nowhere')).rejects.toThrow(
      /^The URL(?!.*hunter2)/,
    )
  })

  it('tells a database that is not there at once, without the password', async () => {
    const url = server.url
      .replace('postgres@', 'postgres:wrong-secret@')
      .replace(/postgres$/, 'no_such_database')
    const refused: unknown = await openPostgresStore(url).catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 'STORE_UNAVAILABLE', cause: { code: '3D000' } })
    expect(JSON.stringify(refused) + String((refused as Error).stack)).not.toContain('wrong-secret')
  })

  it('answers by its deadline, and sends nothing later, when the pool is used up', async () => {
    await withPool(
      async (pool) => {
        const taken = await pool.connect()
        expect(await postgresStore(pool).claim(request('late'), 200)).toMatchObject({ kind: 'unknown' })
        taken.release()
        await pool.query('SELECT 1')
        const { rows } = await admin.query(`SELECT claim FROM holdfast_locks WHERE name = 'late'`)
        expect(rows).toEqual([])
      },
      { max: 1 },
    )
  })

  it('uses no connection twice that leads to where nothing can be written, as after a failover', async () => {
    await withPool(async (pool) => {
      const turnOne = async (): Promise<void> => {
        const client = await pool.connect()
        await client.query('SET default_transaction_read_only = on')
        client.release()
      }
      const store = postgresStore(pool, { listen: false })
      const first = request('moved')
      expect(await store.claim(first, 5000)).toMatchObject({ kind: 'held' })
      await turnOne()
      const refused = { kind: 'unknown', cause: { code: '25006' } }
      expect(await store.renew([{ ...first, tokens: 0 }], 5000)).toMatchObject([refused])
      expect(await store.renew([{ ...first, tokens: 0 }], 5000)).toMatchObject([{ kind: 'renewed' }])

      const holdfast = new Holdfast(store)
      const lease = await holdfast.mutex('moved too').acquire()
      await turnOne()
      const work = (): Promise<string> => store.guarded(lease, () => Promise.resolve('done'))
      await expect(work()).rejects.toMatchObject({ code: '25006' })
      await expect(work()).resolves.toBe('done')
      await lease.release()
      await holdfast.close()
    })
  })

  it('uses no connection twice that a program has left in a role without rights to the table', async () => {
    await admin.query('CREATE ROLE tenant')
    await withPool(
      async (pool) => {
        const store = postgresStore(pool, { listen: false })
        const claim = request('tenant')
        expect(await store.claim(claim, 5000)).toMatchObject({ kind: 'held' })
        await pool.query('SET ROLE tenant')
        const refused = { kind: 'unknown', cause: { code: '42501' } }
        expect(await store.renew([{ ...claim, tokens: 0 }], 5000)).toMatchObject([refused])
        expect(await store.renew([{ ...claim, tokens: 0 }], 5000)).toMatchObject([{ kind: 'renewed' }])
      },
      { max: 1 },
    )
  })

  const ONLY_READS = 'SET default_transaction_read_only = on'

  it('does not take the word of a server that only reads for it that a claim is gone', async () => {
    const run = withPool(
      (pool) =>
        expectNothingGone(postgresStore(pool, { listen: false }), async () => {
          await pool.query(ONLY_READS)
        }),
      { max: 1 },
    )
    await expect(run).resolves.toBeUndefined()
  })

  it.each([ONLY_READS, 'BEGIN'])(
    'listens on no connection on which it would hear nothing: %s',
    async (left) => {
      await withPool(async (pool) => {
        const spoil = async (sql: string): Promise<unknown[]> => {
          const clients = await Promise.all([pool.connect(), pool.connect()])
          const pids = await Promise.all(
            clients.map((client) => client.query('SELECT pg_backend_pid() AS pid')),
          )
          for (const client of clients) await client.query(`ROLLBACK; ${sql}`)
          clients.forEach((client) => client.release())
          return pids.map(({ rows }) => (rows as { pid: unknown }[])[0]?.pid)
        }
        const ear = async (): Promise<unknown> => {
          const { rows } = await admin.query<{ pid: number }>(
            `SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN "holdfast_ear%'`,
          )
          return rows[0]?.pid
        }
        const store = postgresStore(pool)
        const claim = request('ear')
        await store.claim(claim, 5000)
        const bad = await spoil(left)
        const heard: StoreEvent[] = []
        const watch = await store.watch('ear', (event) => heard.push(event), 5000)
        const first = await ear()
        expect(first).toBeDefined()
        expect(bad).not.toContain(first)

        // The server that it listens to becomes an old one.
        const then = await spoil(ONLY_READS)
        expect(await store.renew([{ ...claim, tokens: 0 }], 5000)).toMatchObject([{ kind: 'unknown' }])
        await vi.waitFor(() => expect(heard).toEqual([{ kind: 'gap' }]), 10_000)
        expect([first, ...then]).not.toContain(await ear())
        if (watch.kind === 'watching') watch.stop()
      })
    },
  )

  it('leaves nothing at the server of what the driver gave up by itself', async () => {
    const waiting = async (): Promise<number> => {
      const { rows } = await admin.query<{ pid: number }>(
        `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%timed_locks%'`,
      )
      return rows.length
    }
    await withPool(
      async (pool) => {
        const store = postgresStore(pool, { table: 'timed_locks', listen: false })
        const claim = request('timed')
        await store.claim(claim, 5000)
        await admin.query(`BEGIN; SELECT 1 FROM timed_locks WHERE name = 'timed' FOR UPDATE`)
        const released = store.release(claim, undefined, 5000)
        await vi.waitFor(async () => expect(await waiting()).toBe(1), { interval: 5 })
        expect(await released).toMatchObject({
          released: { kind: 'unknown', cause: { message: 'Query read timeout' } },
        })
        await vi.waitFor(async () => expect(await waiting()).toBe(0), { timeout: 5000 })
        await admin.query('ROLLBACK')
      },
      { query_timeout: 300 },
    )
  })

  it('lets a pool end that it listens on', async () => {
    const pool = new Pool({ connectionString: server.url })
    const [holdfast, other] = [new Holdfast(postgresStore(pool)), new Holdfast(postgresStore(pool))]
    const lease = await holdfast.mutex('ended').acquire()
    const waiting = other.mutex('ended').acquire()
    await vi.waitFor(async () => expect((await holdfast.inspect('ended')).waiters).toHaveLength(1))
    await lease.release()
    await (await waiting).release()
    await expect(pool.end()).resolves.toBeUndefined()
    await Promise.all([holdfast.close(), other.close()])
  })

  it('sends the connection that listens one statement at a time', async () => {
    let [under, most] = [0, 0]
    await withPool(async (pool) => {
      pool.on('connect', (client) => {
        const query = client.query.bind(client) as (config: QueryConfig) => Promise<unknown>
        const counted = (config: QueryConfig): Promise<unknown> => {
          if (!config.text.includes('LISTEN')) return query(config)
          most = Math.max(most, (under += 1))
          return query(config).finally(() => (under -= 1))
        }
        Object.assign(client, { query: counted })
      })
      const watches = await Promise.all(
        ['one', 'two', 'three', 'four'].map(async (session) =>
          postgresStore(pool).watch(session, () => {}, 5000),
        ),
      )
      for (const watch of watches) if (watch.kind === 'watching') watch.stop()
      expect(watches.map(({ kind }) => kind)).toEqual(Array(4).fill('watching'))
    })
    expect(most).toBe(1)
  })

  it('refuses letters at once that the database does not have', async () => {
    await admin.query(
      `CREATE DATABASE western ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`,
    )
    const url = new URL(server.url)
    url.pathname = '/western'
    await withPool(
      async (pool) => {
        const store = postgresStore(pool, { listen: false })
        const refused = { kind: 'unknown', retryable: false, cause: { code: '22P05' } }
        expect(await store.claim(request('日本'), 5000)).toMatchObject(refused)
        expect(await store.claim(request('west', { owner: 'é' }), 5000)).toMatchObject({ kind: 'held' })
      },
      { connectionString: url.href },
    )
  })

  it.each(['made by the first who comes', 'made before, where connections look now'])(
    'has one table, whatever schema a program has left a connection in: %s',
    async (how) => {
      const table = `lost_${(names += 1)}`
      await admin.query('CREATE SCHEMA IF NOT EXISTS tenant_a; CREATE SCHEMA IF NOT EXISTS tenant_b')
      const before = how.startsWith('made before')
      if (before) await admin.query(postgresSchema({ table, schema: 'tenant_b' }))
      const pools = ['a', 'b'].map((tenant) => {
        const pool = new Pool({ connectionString: server.url, max: 1 })
        const use = (path: string): Promise<unknown> => pool.query(`SET search_path TO ${path}`)
        return { pool, use, tenant, store: postgresStore(pool, { table }) }
      })
      for (const { use, tenant } of pools)
        await use(before ? `tenant_${tenant}, tenant_b` : `tenant_${tenant}, public`)
      const claim = request('seat')
      const [first, second] = pools
      if (first === undefined || second === undefined) throw new Error('two pools')
      expect(await first.store.claim(claim, 5000)).toMatchObject({ kind: 'held' })
      expect(await second.store.claim(request('seat'), 5000)).toMatchObject({ kind: 'queued' })
      for (const { use } of pools) await use('tenant_a')
      expect(await first.store.renew([{ ...claim, tokens: 0 }], 5000)).toMatchObject([{ kind: 'renewed' }])
      expect(await second.store.inspect('seat', 5000)).toMatchObject({ holders: [{ id: claim.id }] })
      const { rows } = await admin.query('SELECT schemaname FROM pg_tables WHERE tablename = $1', [table])
      expect(rows).toEqual([{ schemaname: before ? 'tenant_b' : 'public' }])
      await Promise.all(pools.map(({ pool }) => pool.end()))
    },
  )

  it('gives one lock for a name, whatever encoding a program has left a connection in', async () => {
    const name = 'Straße 日本'
    await withPool(async (others) => {
      expect(await postgresStore(others).claim(request(name), 5000)).toMatchObject({ kind: 'held' })
      await withPool(async (pool) => {
        const store = postgresStore(pool)
        const spoil = async (): Promise<void> => {
          const clients = await Promise.all([pool.connect(), pool.connect()])
          for (const client of clients) await client.query(`SET client_encoding = 'LATIN1'`)
          clients.forEach((client) => client.release())
        }
        // Before the store has seen them, and after.
        for (let round = 0; round < 2; round++) {
          await spoil()
          expect(await store.claim(request(name), 5000)).toMatchObject({ kind: 'queued' })
        }
      })
    })
  })

  it('refuses a pool that has all connections begin in another encoding, and a client that is in one', async () => {
    const wrong = { kind: 'unknown', retryable: false, cause: { code: 'HOLDFAST_ENCODING' } }
    await withPool(async (pool) => {
      pool.on('connect', (client) => void client.query(`SET client_encoding = 'LATIN1'`))
      expect(await postgresStore(pool).claim(request('é'), 5000)).toMatchObject(wrong)
      expect(await postgresStore(pool).watch('é', () => {}, 5000)).toMatchObject(wrong)
    })
    const client = new Client({ connectionString: server.url })
    await client.connect()
    const store = postgresStore(client, { listen: false })
    expect(await store.claim(request('é'), 5000)).toMatchObject({ kind: 'held' })
    await client.query(`SET client_encoding = 'LATIN1'`)
    expect(await store.claim(request('é'), 5000)).toMatchObject(wrong)
    await client.query('RESET client_encoding')
    expect(await store.claim(request('é'), 5000)).toMatchObject({ kind: 'queued' })
    await client.end()
  })

  it('takes no lock in another database that the pool’s owner has it lead to later', async () => {
    await admin.query('CREATE DATABASE later')
    const pool = new Pool({ connectionString: server.url, max: 3 })
    const store = postgresStore(pool, { listen: false })
    const claim = request('seat')
    expect(await store.claim(claim, 5000)).toMatchObject({ kind: 'held' })
    const kept = await pool.connect()
    Object.assign(pool.options, { connectionString: new URL('/later', server.url).href })
    expect(await store.claim(request('seat'), 5000)).toMatchObject({
      kind: 'unknown',
      retryable: false,
      cause: { code: 'HOLDFAST_DATABASE' },
    })
    kept.release()
    // By the connection that leads to the first.
    expect(await store.renew([{ ...claim, tokens: 0 }], 5000)).toMatchObject([{ kind: 'renewed' }])
    await pool.end()
  })

  it('guards a transaction that uses another schema, also with a store that has done nothing yet', async () => {
    await admin.query('CREATE SCHEMA IF NOT EXISTS tenant_a')
    await withPool(async (pool) => {
      const holdfast = new Holdfast(postgresStore(pool))
      const lease = await holdfast.mutex('elsewhere').acquire()
      const tx = await pool.connect()
      await tx.query('BEGIN; SET LOCAL search_path TO tenant_a')
      await expect(postgresStore(pool).guard(lease, tx)).resolves.toBeUndefined()
      await tx.query('ROLLBACK')
      tx.release()
      await lease.release()
    })
  })

  it('keeps no connection whose time ended while it was asked what it is in, as with pg before 8.17', async () => {
    let slow = true
    class Old extends Client {
      // Does not tell.
      get _txStatus(): undefined {
        return undefined
      }
      set _txStatus(_: unknown) {}

      override query(...args: [never]): Promise<never> {
        const [{ text }] = args as unknown as [{ text?: string }]
        const send = (): Promise<never> => super.query(...args) as unknown as Promise<never>
        if (!slow || text?.includes('statement_timestamp') !== true) return send()
        return new Promise((resolve) => setTimeout(resolve, 60)).then(send)
      }
    }
    await withPool(
      async (pool) => {
        const store = postgresStore(pool)
        expect(await store.claim(request('asked'), 20)).toMatchObject({ kind: 'unknown' })
        await new Promise((resolve) => setTimeout(resolve, 80))
        slow = false
        expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
      },
      { max: 1, Client: Old, connectionTimeoutMillis: 3000 } as PoolConfig,
    )
  })

  it('gives no connection back that still owes an answer', async () => {
    await withPool(
      async (pool) => {
        const store = postgresStore(pool)
        const claim = request('owed')
        await store.claim(claim, 5000)
        await admin.query('BEGIN')
        await admin.query(`SELECT 1 FROM holdfast_locks WHERE name = 'owed' FOR UPDATE`)
        expect(await store.release(claim, undefined, 200)).toMatchObject({ released: { kind: 'unknown' } })
        // The only connection of the pool was in the middle of that; its place is free for another.
        expect((await pool.query('SELECT 42 AS answer')).rows).toEqual([{ answer: 42 }])
        await admin.query('ROLLBACK')
      },
      { max: 1 },
    )
  })

  describe.skipIf(!available('pgbouncer'))('behind a PgBouncer in transaction mode', () => {
    let bouncer: Server
    beforeAll(async () => void (bouncer = await pgbouncer({ upstream: server })))
    afterAll(() => bouncer.stop())

    it('does without prepared statements when the pooler loses them', async () => {
      await withPool(
        async (pool) => {
          const store = new PostgresSqlStore(pool, { listen: false, prepare: true })
          const runs = Array.from({ length: 12 }, (_, index) =>
            expectShortRun(store, `${ODD} forgotten ${index}/`),
          )
          await expect(Promise.all(runs)).resolves.toHaveLength(12)
        },
        { connectionString: bouncer.url, max: 8 },
      )
    })

    it('does the same', async () => {
      await withPool(
        async (pool) => {
          await expectShortRun(postgresStore(pool, { listen: false }), `${ODD} bouncer`)
          const holdfasts = [1, 2, 3].map(() => new Holdfast(postgresStore(pool, { listen: false })))
          let inside = 0
          const enter = (holdfast: Holdfast): Promise<void> =>
            holdfast.mutex('bouncer').run(async () => {
              inside += 1
              expect(inside).toBe(1)
              await new Promise((resolve) => setTimeout(resolve, 1))
              inside -= 1
            })
          await Promise.all(
            holdfasts.flatMap((holdfast) => Array.from({ length: 10 }, () => enter(holdfast))),
          )
          await Promise.all(holdfasts.map((holdfast) => holdfast.close()))
        },
        { connectionString: bouncer.url, max: 8 },
      )
    })
  })
})
