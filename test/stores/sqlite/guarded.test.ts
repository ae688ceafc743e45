import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { Holdfast } from '../../../src/locks/holdfast.ts'
import { openSqliteStore, sqliteStore } from '../../../src/stores/sqlite/index.ts'
import type { SqliteDatabase, SqliteStore } from '../../../src/stores/sqlite/index.ts'
import { guardMatrix } from '../sql/guard-matrix.ts'
import { guardsAtOnceCases } from '../sql/guards-at-once-cases.ts'
import { folder, hasSqlite, openDatabase } from './databases.ts'
import type { Folder } from './databases.ts'

interface Reading {
  iterate(): Iterator<unknown>
}

describe.skipIf(!hasSqlite()).each(['wal', 'delete'])(
  'a guarded transaction of SQLite, journal %s',
  (journal) => {
    let place: Folder
    let database: SqliteDatabase & { close(): void }
    let store: SqliteStore<typeof database>

    beforeAll(() => {
      place = folder()
      database = openDatabase(place.url.slice('sqlite:'.length))
      database.prepare(`PRAGMA journal_mode = ${journal}`).all()
      database.exec(
        'PRAGMA busy_timeout = 5; CREATE TABLE entries (line TEXT); CREATE TABLE numbers (n INTEGER); INSERT INTO numbers VALUES (1), (2)',
      )
      store = sqliteStore(database)
    })
    afterAll(async () => {
      await store.close()
      database.close()
      place.remove()
    })

    const lines = (): Promise<string[]> =>
      Promise.resolve(
        (database.prepare('SELECT line FROM entries').all() as { line: string }[]).map(({ line }) => line),
      )
    const write = (line: string): void => void database.prepare('INSERT INTO entries VALUES (?)').run(line)

    describe('by guarded', () => {
      guardMatrix(
        () => ({
          store,
          guarded: (lease, line, inside) =>
            store.guarded(lease, () => {
              write(line)
              settle(inside())
            }),
          lines,
        }),
        false,
      )
    })

    describe('by guard, in a transaction of one’s own', () => {
      guardMatrix(
        () => ({
          store,
          guarded: (lease, line, inside) =>
            Promise.resolve().then(() => {
              database.exec('BEGIN')
              try {
                store.guard(lease, database)
                write(line)
                settle(inside())
                store.guard(lease, database)
                database.exec('COMMIT')
              } catch (error) {
                database.exec('ROLLBACK')
                throw error
              }
            }),
          lines,
        }),
        false,
      )
    })

    describe('by guard, through a function', () => {
      const run = (sql: string, params: never[]): unknown => database.prepare(sql).all(...params)
      guardMatrix(
        () => ({
          store,
          guarded: async (lease, line, inside) => {
            database.exec('BEGIN')
            try {
              await store.guard(lease, run)
              write(line)
              settle(inside())
              await store.guard(lease, run)
              database.exec('COMMIT')
            } catch (error) {
              database.exec('ROLLBACK')
              throw error
            }
          },
          lines,
        }),
        false,
      )

      it('takes one whose ORM has errors of its own', async () => {
        const wrapped = (sql: string, params: never[]): unknown => {
          try {
            return run(sql, params)
          } catch (cause) {
            throw new Error(`Failed query: ${sql}`, { cause })
          }
        }
        const holdfast = new Holdfast(store)
        const lease = await holdfast.mutex('wrapped').acquire()
        database.exec('BEGIN')
        await expect(store.guard(lease, wrapped)).resolves.toBeUndefined()
        database.exec('COMMIT')
        await expect(store.guard(lease, wrapped)).rejects.toMatchObject({ argument: 'tx' })
        await holdfast.close({ drain: 0 })
      })

      it('refuses one that is in no transaction, and begins none', async () => {
        const holdfast = new Holdfast(store)
        const lease = await holdfast.mutex('function').acquire()
        await expect(store.guard(lease, run)).rejects.toMatchObject({
          code: 'INVALID_ARGUMENT',
          argument: 'tx',
        })
        database.exec('BEGIN; ROLLBACK')
        await holdfast.close({ drain: 0 })
      })
    })

    describe('in a transaction of one’s own that several leases guard', () => {
      guardsAtOnceCases(() =>
        Promise.resolve({
          store,
          guard: async (lease) => store.guard(lease, database),
          // As a driver that answers later, each in its turn.
          newRunner: () => async (sql, params) => {
            await Promise.resolve()
            return database.prepare(sql).all(...params)
          },
          begin: async () => database.exec('BEGIN'),
          rollback: async () => database.exec('ROLLBACK'),
          end: () => Promise.resolve(),
        }),
      )
    })

    it('waits for its turn to write, and says nothing of a database that is locked', async () => {
      const others = await Promise.all([1, 2, 3].map(() => openSqliteStore(place.url)))
      const holdfasts = [store, ...others].map((one) => new Holdfast(one))
      const rounds = holdfasts.map(async (holdfast, index) => {
        const mine = index === 0 ? store : (others[index - 1] as unknown as typeof store)
        for (let round = 0; round < 25; round++) {
          await holdfast.mutex(`busy ${index}`).run((lease) =>
            mine.guarded(lease, (db) => {
              db.prepare('INSERT INTO entries VALUES (?)').run(`busy ${index} ${round}`)
            }),
          )
        }
      })
      await Promise.all(rounds)
      expect((await lines()).filter((line) => line.startsWith('busy'))).toHaveLength(100)
      for (const holdfast of holdfasts) await holdfast.close({ drain: 0 })
      for (const one of others) await one.close()
    })

    it('says what it waits for in vain beside a statement that is read still', async () => {
      const holdfast = new Holdfast(store)
      const reading = database.prepare('SELECT n FROM numbers') as unknown as Reading
      const rows = reading.iterate()
      rows.next()
      const guarded = holdfast
        .mutex('read')
        .run((lease) => store.guarded(lease, () => write('read')), { wait: 2000 })
      const code = await guarded.then(
        () => 'done',
        (error: { code?: string }) => error.code,
      )
      rows.return?.()
      // Without WAL nobody else can write then, and no lock is to be had. better-sqlite3 runs nothing beside it.
      const inWal = process.getBuiltinModule('node:sqlite') === undefined ? undefined : 'SQLITE_BUSY_SNAPSHOT'
      // A store from a URL has set WAL for good.
      const [mode] = Object.values(database.prepare('PRAGMA journal_mode').all()[0] as object) as unknown[]
      expect(code).toBe(mode === 'wal' ? inWal : 'STORE_UNAVAILABLE')
      expect(await lines()).not.toContain('read')
      await holdfast.mutex('read').run((lease) => store.guarded(lease, () => write('read to its end')))
      expect(await lines()).toContain('read to its end')
      await holdfast.close()
    }, 20_000)

    it.each(['a promise', 'a query that runs when it is awaited', 'a function that is one'])(
      'commits nothing when the work returns %s',
      async (what) => {
        const holdfast = new Holdfast(store)
        const lease = await holdfast.mutex('thenable').acquire()
        let asked = 0
        const then = (done: () => void): void => {
          asked++
          done()
        }
        const [key] = ['then']
        const thenable = (value: object): object => Object.assign(value, { [key]: then })
        const returned = {
          'a promise': () => Promise.reject(new Error('late')),
          'a query that runs when it is awaited': () => thenable({}),
          'a function that is one': () => thenable(() => {}),
        }[what]
        const work = store.guarded(lease, () => {
          write(`thenable ${what}`)
          // As a program without types has it.
          return returned?.() as unknown
        })
        await expect(work).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', argument: 'work' })
        expect(asked).toBe(0)
        expect(await lines()).not.toContain(`thenable ${what}`)
        await holdfast.close({ drain: 0 })
      },
    )

    it.each([['COMMIT'], ['ROLLBACK'], ['COMMIT', 'BEGIN'], ['ROLLBACK', 'BEGIN']])(
      'does not say committed when the work ended the transaction: %s %s',
      async (...ends) => {
        const holdfast = new Holdfast(store)
        const lease = await holdfast.mutex('ended').acquire()
        const work = store.guarded(lease, () => ends.forEach((sql) => database.exec(sql)))
        await expect(work).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', argument: 'work' })
        await store.guarded(lease, () => write('ended'))
        await holdfast.close({ drain: 0 })
      },
    )

    it('refuses to begin inside of a transaction, and guard to do without one', async () => {
      const holdfast = new Holdfast(store)
      const lease = await holdfast.mutex('inside').acquire()
      expect(() => store.guard(lease, database)).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
      )
      database.exec('BEGIN')
      await expect(store.guarded(lease, () => {})).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
      database.exec('ROLLBACK')
      await holdfast.close({ drain: 0 })
    })
  },
)

function settle(result: unknown): void {
  if (result instanceof Promise) result.catch(() => {})
}
