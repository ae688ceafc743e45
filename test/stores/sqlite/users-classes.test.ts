import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import { sqliteStore } from '../../../src/stores/sqlite/index.ts'
import type { SqliteDatabase } from '../../../src/stores/sqlite/index.ts'
import { request } from '../sql/short-run.ts'
import { folder, hasSqlite, openDatabase } from './databases.ts'
import type { Folder } from './databases.ts'

type Database = SqliteDatabase & { close(): void }

const opened = new Map<string, Database>()
const cached = (path: string): Database => {
  const inner = opened.get(path) ?? openDatabase(path)
  opened.set(path, inner)
  return inner
}

class Wrapper implements SqliteDatabase {
  protected readonly inner: Database
  constructor(inner: Database) {
    this.inner = inner
  }
  exec(sql: string): unknown {
    return this.inner.exec(sql)
  }
  prepare(sql: string): ReturnType<SqliteDatabase['prepare']> {
    return this.inner.prepare(sql)
  }
  close(): void {
    this.inner.close()
  }
}

class OnePerFile extends Wrapper {
  constructor(path: string) {
    super(cached(path))
  }
}

class WithoutClose extends OnePerFile {
  override close = undefined as never
}

/** Ways in which programs have their database, other than as the driver's own object. */
const CLASSES: Readonly<Record<string, (path: string) => SqliteDatabase>> = {
  'a class with one connection for each file': (path) => new OnePerFile(path),
  'the same without close': (path) => new WithoutClose(path),
  'a class that is given a database': (path) => new Wrapper(cached(path)),
  'a proxy': (path) => {
    const inner = cached(path)
    return new Proxy(inner, {
      get: (_, key) => {
        const value: unknown = Reflect.get(inner, key, inner)
        return typeof value === 'function' ? (value.bind(inner) as unknown) : value
      },
    })
  },
  'a derived class that gives the same object each time': (path) => {
    const Driver = openDatabase(':memory:').constructor as new (path: string) => Database
    class Derived extends Driver {
      constructor(file: string) {
        const known = opened.get(file)
        // A constructor may return another object.
        if (known !== undefined) return known as Derived
        super(file)
        opened.set(file, this)
      }
    }
    return new Derived(path)
  },
}

describe.skipIf(!hasSqlite())('a SQLite store on a database of the user’s own making', () => {
  let place: Folder
  let path: string
  beforeEach(() => {
    place = folder()
    path = place.url.slice('sqlite:'.length)
  })
  afterEach(() => {
    opened.clear()
    place.remove()
  })

  const cases = Object.keys(CLASSES).flatMap((how) => [false, true].map((known) => ({ how, known })))

  it.each(cases)('grants nothing that a rollback undoes: $how, known $known', async ({ how, known }) => {
    const database = CLASSES[how]?.(path)
    if (database === undefined) throw new Error('no such class')
    database.exec('PRAGMA journal_mode = WAL')
    database.exec('PRAGMA busy_timeout = 77')
    const store = sqliteStore(database)
    const first = request('m')
    if (known) {
      await store.claim(first, 1000)
      await store.release(first, undefined, 1000)
    }
    database.exec('BEGIN')
    const claim = request('m', { whenBusy: 'try' })
    const answer = await store.claim(claim, 100)
    database.exec('ROLLBACK')
    const seen = await store.inspect('m', 1000)
    if ('kind' in seen) throw seen.cause
    expect(seen.holders.map(({ id }) => id)).toEqual(answer.kind === 'held' ? [claim.id] : [])
    expect(await store.claim(request('another'), 1000)).toMatchObject({ kind: 'held' })
    // Its settings are the user's, and it stays open.
    await store.close()
    expect(Object.values(database.prepare('PRAGMA busy_timeout').all()[0] as object)).toEqual([77])
  })

  it('writes nothing to the file of a database for reading only', async () => {
    const writing = openDatabase(path)
    writing.exec('CREATE TABLE entries (line TEXT)')
    const Driver = writing.constructor as new (path: string, options: object) => Database
    const reading = new Driver(path, { readOnly: true, readonly: true })
    const store = sqliteStore(reading)
    expect(await store.claim(request('m'), 1000)).toMatchObject({
      kind: 'unknown',
      cause: { code: 'SQLITE_READONLY' },
    })
    expect(writing.prepare('SELECT name FROM sqlite_master').all()).toMatchObject([{ name: 'entries' }])
    await store.close()
    reading.close()
    writing.close()
  })
})
