import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import { Holdfast } from '../../../src/locks/holdfast.ts'
import { fenced, optimistic, sqliteStore } from '../../../src/stores/sqlite/index.ts'
import type { SqliteDatabase } from '../../../src/stores/sqlite/index.ts'
import { expectShortRun, request } from '../sql/short-run.ts'

type Database = SqliteDatabase & { close(): void }
type Constructor = new (path: string, options: object) => Database

const builtin = process.getBuiltinModule('node:sqlite') as { DatabaseSync: Constructor } | undefined

const OPTIONS = [
  {},
  { returnArrays: true },
  { readBigInts: true },
  { returnArrays: true, readBigInts: true },
  { allowBareNamedParameters: false },
  { allowUnknownNamedParameters: true },
  { enableForeignKeyConstraints: false },
  { enableDoubleQuotedStringLiterals: true },
  { timeout: 50 },
  { defensive: true },
]

describe.skipIf(builtin === undefined)('a database of node:sqlite', () => {
  const inFolder = async (options: object, work: (open: () => Database, path: string) => Promise<void>) => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-options-'))
    const path = join(folder, 'locks.db')
    const databases: Database[] = []
    const open = (): Database => {
      const { DatabaseSync } = builtin as { DatabaseSync: Constructor }
      const database = new DatabaseSync(path, options)
      database.exec('PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5')
      databases.push(database)
      return database
    }
    try {
      await work(open, path)
    } finally {
      for (const database of databases) database.close()
      rmSync(folder, { recursive: true, force: true })
    }
  }

  describe.each(OPTIONS)('with %j', (options) => {
    it('makes no difference to locks, or to what they guard', async () => {
      await inFolder(options, async (open) => {
        const database = open()
        const store = sqliteStore(database)
        await expectShortRun(store, 'options')
        database.exec('CREATE TABLE entries (line TEXT)')
        const holdfast = new Holdfast(store)
        const lease = await holdfast.mutex('guarded').acquire()
        await store.guarded(lease, (tx) => tx.exec(`INSERT INTO entries VALUES ('in')`))
        // While a transaction of the user's is open there, too: locks have a connection of their own.
        database.exec('BEGIN')
        store.guard(lease, database)
        expect(await store.inspect('guarded', 5000)).toMatchObject({ holders: [{ token: lease.token }] })
        database.exec('ROLLBACK')
        database.exec('BEGIN')
        expect(await store.claim(request('beside'), 5000)).toMatchObject({ kind: 'held' })
        database.exec('ROLLBACK')
        expect(await store.inspect('beside', 5000)).toMatchObject({ holders: [{ weight: 1 }] })
        await lease.release()
        await holdfast.close()
      })
    })

    it('makes no difference to tables of the user', async () => {
      await inFolder(options, async (open) => {
        const database = open()
        database.exec(
          'CREATE TABLE seat (id INTEGER PRIMARY KEY, owner TEXT, fence INTEGER, version INTEGER)',
        )
        database.exec(`INSERT INTO seat VALUES (7, 'free', NULL, 0)`)
        const seats = fenced(database, { table: 'seat', key: 'id' })
        expect(await seats.update(7, 20n, { owner: 'a' })).toBe('written')
        expect(await seats.update(7, 19n, { owner: 'b' })).toBe('stale')
        expect(await seats.update(8, 20n, { owner: 'b' })).toBe('missing')
        const table = optimistic<{ owner: string }>(database, { table: 'seat', key: 'id' })
        expect(await table.update(7, ({ owner }) => ({ owner: `${owner}!` }))).toMatchObject({
          kind: 'updated',
          row: { owner: 'a' },
        })
      })
    })

    it('loses what is held in a file that is deleted', async () => {
      await inFolder(options, async (open, path) => {
        const holdfast = new Holdfast(sqliteStore(open()), { ttl: 300 })
        const lease = await holdfast.mutex('deleted').acquire()
        for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true })
        await expect.poll(() => lease.held, { timeout: 5000 }).toBe(false)
        await holdfast.close({ drain: 0, timeout: 100 })
      })
    })
  })

  it('is refused, with the reason, if it keeps its file to itself', async () => {
    await inFolder({}, async (open) => {
      const database = open()
      const store = sqliteStore(database)
      database.exec('PRAGMA locking_mode = EXCLUSIVE')
      const refused = { kind: 'unknown', cause: { code: 'HOLDFAST_EXCLUSIVE' }, retryable: false }
      expect(await store.claim(request('exclusive'), 5000)).toMatchObject(refused)
      // Nothing was done that would have it take the file for itself.
      database.exec('PRAGMA locking_mode = NORMAL')
      expect(await store.claim(request('exclusive'), 5000)).toMatchObject({ kind: 'held' })
      await store.close()
    })
  })
})
