import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import type { ClaimRequest } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import {
  fenced,
  openSqliteStore,
  optimistic,
  sqliteSchema,
  sqliteStore,
} from '../../../src/stores/sqlite/index.ts'
import type { SqliteDatabase } from '../../../src/stores/sqlite/index.ts'
import { isBusy } from '../../../src/stores/sqlite/failure.ts'
import { request } from '../sql/short-run.ts'
import { userTableCases } from '../sql/user-table-cases.ts'
import { folder, hasSqlite, openDatabase } from './databases.ts'
import type { Folder } from './databases.ts'

const dist = (path: string): string => JSON.stringify(new URL(`../../../dist/${path}`, import.meta.url).href)

const PRELUDE = `
  import { readFileSync, writeFileSync } from 'node:fs'
  import { Holdfast } from ${dist('locks/holdfast.js')}
  import { openSqliteStore } from ${dist('stores/sqlite/open.js')}
  const [url, counter] = process.argv.slice(1)
  const store = await openSqliteStore(url)
  const holdfast = new Holdfast(store, { ttl: 1000, patience: 500 })
`

/** Counts in a file, 50 times, with nothing but the lock to keep others from doing so at the same time. */
const COUNT = `${PRELUDE}
  for (let round = 0; round < 50; round++) {
    await holdfast.mutex('count').run(async () => {
      const seen = Number(readFileSync(counter, 'utf8'))
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 2))
      writeFileSync(counter, String(seen + 1))
    })
  }
  await holdfast.close()
  await store.close()
`

/** Writes without end. */
const CHURN = `${PRELUDE}
  console.log('started')
  for (;;) await holdfast.mutex('churn').run(() => {})
`

describe.skipIf(!hasSqlite())('the SQLite store', () => {
  let place: Folder
  beforeEach(() => void (place = folder()))
  afterEach(() => place.remove())

  const child = (program: string, ...args: string[]): ReturnType<typeof spawn> =>
    spawn(
      process.execPath,
      ['--no-warnings', '--input-type=module', '-e', program, '--', place.url, ...args],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )

  it('keeps four processes apart', async () => {
    const counter = `${place.url.slice('sqlite:'.length)}.count`
    writeFileSync(counter, '0')
    const children = [1, 2, 3, 4].map(() => child(COUNT, counter))
    const codes = await Promise.all(children.map(async (one) => (await once(one, 'exit'))[0] as number))
    expect(codes).toEqual([0, 0, 0, 0])
    expect(readFileSync(counter, 'utf8')).toBe('200')
  })

  it('survives holders that are killed in the middle of a write', async () => {
    const store = await openSqliteStore(place.url)
    const holdfast = new Holdfast(store)
    let last = 0n
    for (let round = 0; round < 8; round++) {
      const churning = child(CHURN)
      await once(churning.stdout ?? churning, 'data')
      await sleep(20 + round * 7)
      churning.kill('SIGKILL')
      await once(churning, 'exit')
      const lease = await holdfast.mutex('churn').acquire({ wait: 10_000 })
      expect(lease.token).toBeGreaterThan(last)
      last = lease.token
      await lease.release()
    }
    await holdfast.close()
    await store.close()
    const database = openDatabase(place.url.slice('sqlite:'.length))
    expect(database.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
    database.close()
  })

  it('answers that it does not know when the disk is full, and goes on when there is room again', async () => {
    const database = openDatabase(place.url.slice('sqlite:'.length))
    // How large a file may grow is a connection's own affair: the store has to use this one.
    const same: SqliteDatabase = {
      exec: (sql) => database.exec(sql),
      prepare: (sql) => database.prepare(sql),
    }
    const store = sqliteStore(same)
    const claim = (name: string): ClaimRequest => request(name, { owner: 'x'.repeat(150), whenBusy: 'try' })
    const first = claim('first')
    expect(await store.claim(first, 1000)).toMatchObject({ kind: 'held' })
    database.exec('PRAGMA max_page_count = 4')
    const answers = []
    for (let index = 0; index < 60; index++) answers.push(await store.claim(claim(`name ${index}`), 1000))
    expect(answers.at(-1)).toMatchObject({
      kind: 'unknown',
      cause: { message: expect.stringContaining('full') as unknown },
    })
    expect(await store.release(first, undefined, 1000)).toEqual({ released: { kind: 'released' } })
    database.exec('PRAGMA max_page_count = 10000')
    expect(await store.claim(claim('name 59'), 1000)).toMatchObject({ kind: 'held' })
    await store.close()
    database.close()
  })

  it('waits outside SQLite while another process writes, and tells when that takes too long', async () => {
    const store = await openSqliteStore(place.url)
    const other = openDatabase(place.url.slice('sqlite:'.length))
    other.exec('BEGIN IMMEDIATE')
    const claim = request('busy')
    let ticks = 0
    const ticking = setInterval(() => ticks++, 5)
    expect(await store.claim(claim, 300)).toMatchObject({ kind: 'unknown' })
    expect(ticks).toBeGreaterThan(5)
    clearInterval(ticking)
    const waiting = store.claim(claim, 5000)
    await sleep(50)
    other.exec('COMMIT')
    expect(await waiting).toMatchObject({ kind: 'held' })
    other.close()
    await store.close()
  })

  it('answers at once for a name that it knows, unless SQLite had to wait for somebody', async () => {
    const database = openDatabase(place.url.slice('sqlite:'.length))
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
    let delay = 0
    const sleepy: SqliteDatabase = {
      exec: (sql) => database.exec(sql),
      prepare(sql) {
        const statement = database.prepare(sql)
        return {
          all: (...values) => statement.all(...values),
          run(...values) {
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, delay)
            return statement.run(...values)
          },
        }
      },
    }
    const store = sqliteStore(sleepy)
    const takeAndFree = (): unknown[] => {
      const claim = request('at once')
      return [store.claim(claim, 1000), store.release(claim, undefined, 1000)]
    }
    const rounds = async (): Promise<unknown[][]> => {
      const answers: unknown[][] = []
      for (let round = 0; round < 50; round++) {
        const pair = takeAndFree()
        answers.push(pair)
        expect(await Promise.all(pair)).toMatchObject([{ kind: 'held' }, { released: { kind: 'released' } }])
      }
      return answers
    }
    await Promise.all(takeAndFree())
    // Not each time: at the turn of a millisecond its token is another than expected.
    const isPromise = (answer: unknown): boolean => answer instanceof Promise
    expect((await rounds()).filter(([claimed]) => !isPromise(claimed)).length).toBeGreaterThan(10)
    delay = 3
    expect((await rounds()).every(([claimed]) => isPromise(claimed))).toBe(true)
    await store.close()
    expect(await store.claim(request('at once'), 1000)).toMatchObject({ kind: 'unknown' })
    database.close()
  })

  it.each(['a new name each time', 'one name', 'guarded transactions'])(
    'lets timers and renewals have their turn while a task works in a loop: %s',
    { timeout: 60_000 },
    async (loop) => {
      const store = await openSqliteStore(place.url)
      const holdfast = new Holdfast(store)
      const beside = await holdfast.mutex('beside', { ttl: 60_000 }).acquire()
      let fired = false
      setTimeout(() => (fired = true), 50)
      const until = performance.now() + 5000
      for (let round = 0; !fired && performance.now() < until; round++) {
        if (loop === 'guarded transactions') await store.guarded(beside, () => {})
        else await holdfast.mutex(loop === 'one name' ? loop : `name ${round}`).run(() => {})
      }
      expect(fired).toBe(true)
      await holdfast.close()
      await store.close()
    },
  )

  it('gives growing tokens, whoever of two had the name before', async () => {
    const stores = await Promise.all([1, 2].map(() => openSqliteStore(place.url)))
    let last = 0n
    for (let round = 0; round < 300; round++) {
      // Once, twice or three times in a row, and blocks of tokens between single ones.
      const store = stores[Math.floor(round / (1 + (round % 3))) % 2]
      const claim = request('turns', { tokens: 1 + (round % 7) * 100 })
      const answer = await store?.claim(claim, 1000)
      if (answer?.kind !== 'held') throw new Error(`round ${round}: ${answer?.kind}`)
      expect(answer.token).toBeGreaterThan(last)
      last = answer.token + BigInt(answer.count) - 1n
      expect(await store?.release(claim, undefined, 1000)).toEqual({ released: { kind: 'released' } })
    }
    for (const store of stores) await store.close()
  })

  it('commits what a lease guards, and nothing for a lease that is over', async () => {
    const database = openDatabase(place.url.slice('sqlite:'.length))
    database.exec('CREATE TABLE entries (line TEXT)')
    const lines = (): unknown[] => database.prepare('SELECT line FROM entries').all()
    const store = sqliteStore(database)
    const holdfast = new Holdfast(store)
    const lease = await holdfast.mutex('guard').acquire()
    await store.guarded(lease, (db) => db.exec(`INSERT INTO entries VALUES ('kept')`))
    await expect(
      store.guarded(lease, (db) => {
        db.exec(`INSERT INTO entries VALUES ('thrown')`)
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    await expect(store.guarded(lease, async (db) => Promise.resolve(db))).rejects.toThrow(/must not wait/)
    await lease.release()
    await expect(
      store.guarded(lease, (db) => db.exec(`INSERT INTO entries VALUES ('late')`)),
    ).rejects.toMatchObject({ code: 'LOCK_LOST' })
    expect(lines()).toMatchObject([{ line: 'kept' }])
    await holdfast.close()
    database.close()
  })

  it('makes no table when it is not to, and takes one that was made by hand', async () => {
    const database = openDatabase(place.url.slice('sqlite:'.length))
    const store = sqliteStore(database, { migrate: false, table: 'my_locks' })
    expect(await store.inspect('x', 1000)).toMatchObject({ kind: 'unknown', retryable: false })
    database.exec(sqliteSchema({ table: 'my_locks' }))
    expect(await store.inspect('x', 1000)).toMatchObject({ name: 'x', holders: [] })
    database.close()
  })

  it('opens nothing again, and gives no lock, when it was closed while somebody waited for a turn to write', async () => {
    const database = openDatabase(place.url.slice('sqlite:'.length))
    const store = sqliteStore(database)
    await store.claim(request('before'), 5000)
    database.exec('BEGIN IMMEDIATE')
    const late = store.claim(request('late'), 5000)
    await sleep(50)
    await store.close()
    database.exec('COMMIT')
    expect(await late).toMatchObject({ kind: 'unknown', cause: { code: 'HOLDFAST_CLOSED' } })
    expect(database.prepare(`SELECT name FROM holdfast_locks WHERE name = 'late'`).all()).toEqual([])
    database.close()
  })

  it.each([new Date(0), {}, { a: 1 }, []])('refuses to store %j, which it has no way to', async (value) => {
    const database = openDatabase(place.url.slice('sqlite:'.length))
    database.exec('CREATE TABLE things (id INTEGER PRIMARY KEY, thing TEXT, version INTEGER, fence INTEGER)')
    database.exec(`INSERT INTO things VALUES (1, 'as it was', 0, NULL)`)
    const options = { table: 'things', key: 'id' }
    const refused = { code: 'INVALID_ARGUMENT', argument: 'change' }
    const change = { thing: value }
    await expect(optimistic(database, options).update(1, () => change)).rejects.toMatchObject(refused)
    await expect(fenced(database, options).update(1, 1n, change)).rejects.toMatchObject(refused)
    const { kind } = await optimistic(database, options).update(1, () => ({ thing: new Uint8Array([1]) }))
    expect(kind).toBe('updated')
    database.close()
  })

  it.each(['optimistic', 'fenced'])(
    'writes nothing into a transaction that another task begins meanwhile: %s',
    async (way) => {
      const path = place.url.slice('sqlite:'.length)
      const [database, other] = [openDatabase(path), openDatabase(path)]
      database.exec('PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 0')
      database.exec('CREATE TABLE stock (id INTEGER, n INTEGER, version INTEGER, fence INTEGER)')
      database.exec('INSERT INTO stock VALUES (1, 0, 0, 0)')
      const options = { table: 'stock', key: 'id' }
      const write = async (): Promise<string> =>
        way === 'fenced'
          ? fenced(database, options).update(1, 5n, { n: 1 })
          : (await optimistic(database, options).update(1, () => ({ n: 1 }))).kind
      const n = (): unknown => (other.prepare('SELECT n FROM stock').all()[0] as { n: unknown }).n

      // While it waits for its next attempt, and between its look and its write.
      for (const busy of [true, false]) {
        if (busy) other.exec('BEGIN IMMEDIATE')
        const written = write()
        if (busy) await sleep(20)
        database.exec('BEGIN')
        if (busy) other.exec('ROLLBACK')
        await sleep(50)
        database.exec('ROLLBACK')
        expect(await written).toMatch(/^(updated|written)$/)
        expect(n()).toBe(1)
        database.exec('UPDATE stock SET n = 0')
      }
      database.close()
      other.close()
    },
  )

  it('tells of a file that somebody keeps locked, and not of changes that nobody has made', async () => {
    const path = place.url.slice('sqlite:'.length)
    const [database, other] = [openDatabase(path), openDatabase(path)]
    database.exec('PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 0')
    database.exec('CREATE TABLE kept (id INTEGER, n INTEGER, version INTEGER, fence INTEGER)')
    database.exec('INSERT INTO kept VALUES (1, 0, 0, 0)')
    other.exec('BEGIN IMMEDIATE')
    const options = { table: 'kept', key: 'id', attempts: 3 }
    const writes = [
      () => fenced(database, options).update(1, 5n, { n: 1 }),
      () => optimistic(database, options).update(1, () => ({ n: 1 })),
    ]
    for (const write of writes) await expect(write()).rejects.toSatisfy(isBusy)
    other.exec('ROLLBACK')
    database.close()
    other.close()
  })

  it('refuses an older token in a column without a type, whatever kind of number is there', async () => {
    const database = openDatabase(place.url.slice('sqlite:'.length))
    database.exec('CREATE TABLE loose_seat (id, owner, fence)')
    database.exec(`INSERT INTO loose_seat VALUES (1, 'b', 1794780646347432)`)
    const seat = fenced(database, { table: 'loose_seat', key: 'id' })
    expect(await seat.update(1, 1_794_780_646_347_431n, { owner: 'a' })).toBe('stale')
    expect(await seat.update(1, 1_794_780_646_347_433n, { owner: 'c' })).toBe('written')
    expect(await seat.update(1, 9n, { owner: 'a' })).toBe('stale')
    database.close()
  })

  describe('and a table of the user', () => {
    userTableCases(() => {
      const database = openDatabase(place.url.slice('sqlite:'.length))
      database.exec(
        'CREATE TABLE IF NOT EXISTS bonus (id INTEGER PRIMARY KEY, left_count INTEGER, version INTEGER)',
      )
      database.exec('CREATE TABLE IF NOT EXISTS seat (id INTEGER PRIMARY KEY, owner TEXT, fence INTEGER)')
      return {
        optimistic: (options) => optimistic(database, options),
        fenced: (options) => fenced(database, options),
        sql: (text) => {
          if (!text.startsWith('SELECT')) return Promise.resolve(database.exec(text)).then(() => [])
          return Promise.resolve(database.prepare(text).all() as Record<string, unknown>[])
        },
      }
    })
  })
})
