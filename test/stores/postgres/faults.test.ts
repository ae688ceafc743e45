import { Client, Pool } from 'pg'
import type { PoolClient } from 'pg'
import { FaultProxy } from 'holdfast/testkit'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'

import { available, clockShim, postgres } from '../../../scripts/services.mjs'
import type { ClockShim, Server } from '../../../scripts/services.mjs'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import { faultCases } from '../sql/fault-cases.ts'

describe.skipIf(!available('postgres') || !available('cc'))('PostgreSQL that is hurt', () => {
  let server: Server
  let clock: ClockShim
  const pools: Pool[] = []

  /** A connection of its own, for nothing of it may be killed along with the others. */
  const admin = async <T>(work: (client: Client) => Promise<T>): Promise<T> => {
    const client = new Client({ connectionString: server.url })
    // Another one of these may be killed by this one.
    client.on('error', () => {})
    await client.connect()
    try {
      return await work(client)
    } finally {
      await client.end()
    }
  }

  beforeAll(async () => {
    clock = await clockShim()
    server = await postgres({ env: clock.env })
    await admin((client) => client.query('CREATE TABLE entries (line text NOT NULL)'))
  })
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()))
    await server.stop()
    clock.dispose()
  })

  it('listens on another connection when the one that listened does not answer', async () => {
    const proxy = await FaultProxy.open(server)
    const pool = new Pool({ host: proxy.host, port: proxy.port, user: 'postgres', database: 'postgres' })
    pool.on('error', () => {})
    pools.push(pool)
    const store = postgresStore(pool)
    const heard: string[] = []
    const first = await store.watch('first', ({ kind }) => heard.push(kind), 20_000)
    expect(first.kind).toBe('watching')
    proxy.set('requests', { blackhole: true })
    expect(await store.watch('second', () => {}, 300)).toMatchObject({ kind: 'unknown' })
    // What was swallowed stays lost: the connection never says anything again.
    proxy.heal()
    expect(await store.watch('second', () => {}, 20_000)).toMatchObject({ kind: 'watching' })
    await vi.waitFor(() => expect(heard).toEqual(['gap']), 20_000)
    await store.close()
    await proxy.close()
  })

  it('hands a lock on when the server has no room for messages', async () => {
    // Eight gigabytes that some listener does not read fill the queue of the whole server. This says the same.
    await admin((client) =>
      client.query(`CREATE SCHEMA full_queue;
        CREATE FUNCTION full_queue.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
          RAISE EXCEPTION 'too many notifications in the NOTIFY queue' USING ERRCODE = '54000';
        END $$`),
    )
    const options = '-c search_path=public,full_queue,pg_catalog'
    const open = (): Pool => {
      const pool = new Pool({ connectionString: server.url, max: 3, options })
      pool.on('error', () => {})
      pools.push(pool)
      return pool
    }
    const holdfasts = [open(), open()].map((pool) => new Holdfast(postgresStore(pool)))
    const [first, second] = holdfasts as [Holdfast, Holdfast]
    const ttl = 15_000
    const lease = await first.mutex('full', { ttl }).acquire()
    const waiting = second.mutex('full', { ttl }).acquire({ wait: 50_000 })
    await vi.waitFor(async () => {
      expect(await first.inspect('full')).toMatchObject({ waiters: [{}] })
    }, 20_000)
    expect(await lease.release()).toBe('released')
    // Not told of it, it asks by itself.
    const next = await waiting
    expect(next.held).toBe(true)
    await next.release()
    await Promise.all(holdfasts.map((holdfast) => holdfast.close()))
  }, 90_000)

  faultCases<PoolClient>(() => ({
    server,
    clock,
    module: {
      url: new URL('../../../dist/stores/postgres/open.js', import.meta.url).href,
      export: 'openPostgresStore',
      args: server.url,
    },
    open: ({ connections = 5, port = server.port } = {}) => {
      const pool = new Pool({
        host: server.host,
        port,
        user: 'postgres',
        database: 'postgres',
        max: connections,
      })
      pool.on('error', () => {})
      pools.push(pool)
      return { store: postgresStore(pool), ping: () => pool.query('SELECT 1') }
    },
    killConnections: async () => {
      await admin((client) =>
        client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`),
      )
    },
    deadlock: (first, second, locked) =>
      admin(async (client) => {
        await client.query('BEGIN')
        await client.query('SELECT 1 FROM holdfast_locks WHERE name = $1 FOR UPDATE', [first])
        await locked()
        // The other one has waited for longer, so it is the first to look for a deadlock, and gives way.
        await client.query('SELECT 1 FROM holdfast_locks WHERE name = $1 FOR UPDATE', [second])
        await client.query('COMMIT')
        await vi.waitFor(async () => {
          const { rows } = await client.query<{ deadlocks: string }>(
            'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
          )
          if (!(Number(rows[0]?.deadlocks) > 0)) throw new Error('there was no deadlock')
        }, 10_000)
      }),
    dropTable: async () =>
      void (await admin((client) => client.query('DROP TABLE IF EXISTS holdfast_locks'))),
    write: (tx, line) => tx.query('INSERT INTO entries VALUES ($1)', [line]),
    lines: () =>
      admin(async (client) => {
        const { rows } = await client.query<{ line: string }>('SELECT line FROM entries')
        return rows.map(({ line }) => line)
      }),
  }))
})
