import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import { Holdfast } from '../../../src/locks/holdfast.ts'
import { openSqliteStore, sqliteStore } from '../../../src/stores/sqlite/index.ts'
import type { SqliteDatabase } from '../../../src/stores/sqlite/index.ts'
import { request } from '../sql/short-run.ts'
import { hasSqlite, openDatabase } from './databases.ts'

type Database = SqliteDatabase & { close(): void }

/** What happens to files, and what is none. */
describe.skipIf(!hasSqlite())('the file of a SQLite store', () => {
  let folder: string
  let path: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-files-'))
    path = join(folder, 'locks.db')
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  it.each([':memory:', 'file::memory:', 'file:x?mode=memory&cache=shared', ''])(
    'is not "%s", which is one connection’s alone',
    async (name) => {
      await expect(openSqliteStore(`sqlite:${name}`)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    },
  )

  it('is refused at once when it is for reading only, however long one would wait', async () => {
    const { DatabaseSync } = process.getBuiltinModule('node:sqlite') as unknown as {
      DatabaseSync: new (path: string, options: { readOnly: boolean }) => Database
    }
    const first = await openSqliteStore(`sqlite:${path}`)
    await first.close()
    const database = new DatabaseSync(path, { readOnly: true })
    const store = sqliteStore(database)
    const holdfast = new Holdfast(store)
    const began = performance.now()
    await expect(holdfast.mutex('read only').acquire({ wait: 60_000 })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      cause: { code: 'SQLITE_READONLY' },
    })
    expect(performance.now() - began).toBeLessThan(10_000)
    await holdfast.close({ drain: 0, timeout: 100 })
    database.close()
  })

  it('gives no lock, and says so at once, when somebody has dropped the table', async () => {
    const database = openDatabase(path)
    const holdfast = new Holdfast(sqliteStore(database))
    await holdfast.mutex('dropped').run(() => {})
    database.exec('DROP TABLE holdfast_locks')
    const began = performance.now()
    await expect(holdfast.mutex('dropped').acquire({ wait: 60_000 })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      cause: { code: 'SQLITE_NO_TABLE', message: expect.stringContaining('no such table') as string },
    })
    expect(performance.now() - began).toBeLessThan(10_000)
    await holdfast.close({ drain: 0, timeout: 100 })
    database.close()
  })

  it.each([
    ['deleted', (): void => rmSync(path)],
    ['replaced', (): void => renameSync(path, `${path}.old`)],
  ])('that is %s takes its leases along, and gives no others', async (_, happen) => {
    const store = await openSqliteStore(`sqlite:${path}`)
    const holdfast = new Holdfast(store, { ttl: 9000 })
    await holdfast.mutex('known').run(() => {})
    const lease = await holdfast.mutex('held').acquire()
    happen()
    const other = await openSqliteStore(`sqlite:${path}`)
    expect(await other.claim(request('held', { whenBusy: 'try' }), 1000)).toMatchObject({ kind: 'held' })
    // By the next renewal, which asks; not only when the time that it has is over.
    await expect.poll(() => lease.held, { timeout: 5000, interval: 20 }).toBe(false)
    expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: 'LOCK_LOST' }))
    for (const name of ['known', 'new']) {
      await expect(holdfast.mutex(name).acquire({ wait: 60_000 })).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        cause: { code: 'HOLDFAST_FILE_GONE' },
      })
    }
    await holdfast.close({ drain: 0, timeout: 100 })
    await Promise.all([store.close(), other.close()])
  })

  it('that is deleted commits nothing that a lease there guards', async () => {
    const database = openDatabase(path)
    database.exec('CREATE TABLE entries (line TEXT)')
    const store = sqliteStore(database)
    const holdfast = new Holdfast(store)
    const lease = await holdfast.mutex('guard').acquire()
    await store.guarded(lease, (db) => db.exec(`INSERT INTO entries VALUES ('before')`))
    rmSync(path)
    const late = store.guarded(lease, (db) => db.exec(`INSERT INTO entries VALUES ('late')`))
    await expect(late).rejects.toMatchObject({ code: 'LOCK_LOST' })
    expect(database.prepare('SELECT line FROM entries').all()).toMatchObject([{ line: 'before' }])
    await holdfast.close({ drain: 0, timeout: 100 })
    await store.close()
    database.close()
  })
})
