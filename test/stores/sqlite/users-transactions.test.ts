import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import type { Store } from '../../../src/core/contract.ts'
import { sqliteStore } from '../../../src/stores/sqlite/index.ts'
import type { SqliteDatabase } from '../../../src/stores/sqlite/index.ts'
import { request } from '../sql/short-run.ts'
import { folder, hasSqlite, openDatabase } from './databases.ts'
import type { Folder } from './databases.ts'

const TIMEOUT = 60

/** How a task of the program may have the store's database just then. */
const BEGINS = {
  'a transaction that has done nothing': ['BEGIN'],
  'a transaction that has read': ['BEGIN', 'SELECT count(*) FROM entries'],
  'a transaction that writes': ['BEGIN IMMEDIATE', `INSERT INTO entries VALUES ('x')`],
  'an exclusive transaction': ['BEGIN EXCLUSIVE'],
  'a savepoint': ['SAVEPOINT mine'],
  'a savepoint in a transaction': ['BEGIN', 'SAVEPOINT mine'],
}

/** Undoes all that the transaction did, whatever it began with. */
const UNDO = ['ROLLBACK']

const asked = {
  claim: async (store: Store, name: string) => {
    const claim = request(name, { whenBusy: 'try' })
    const answer = await store.claim(claim, TIMEOUT)
    return { id: claim.id, sure: answer.kind !== 'unknown', held: answer.kind === 'held' }
  },
  'claim of a known name': (store: Store, name: string) => asked.claim(store, name),
  renew: async (store: Store, name: string, { held }: Known) => {
    const [answer] = await store.renew([{ ...held, name, ttl: 60_000, tokens: 0 }], TIMEOUT)
    return { id: held.id, sure: answer?.kind !== 'unknown', held: true, longer: answer?.kind === 'renewed' }
  },
  release: async (store: Store, name: string, { held }: Known) => {
    const { released } = await store.release({ ...held, name }, undefined, TIMEOUT)
    return { id: held.id, sure: released.kind !== 'unknown', held: released.kind !== 'released' }
  },
  withdraw: async (store: Store, name: string, { held }: Known) => {
    const { kind } = await store.withdraw({ ...held, name }, TIMEOUT)
    return { id: held.id, sure: kind !== 'unknown', held: kind !== 'released' }
  },
}

interface Known {
  readonly held: ReturnType<typeof request>
}

interface Told {
  readonly id: string
  readonly sure: boolean
  readonly held: boolean
  readonly longer?: boolean
}

describe.skipIf(!hasSqlite())('a SQLite store whose database is in somebody else’s transaction', () => {
  let place: Folder
  beforeEach(() => void (place = folder()))
  afterEach(() => place.remove())

  const cases = Object.keys(BEGINS).flatMap((begun) =>
    ['a file', 'a file in rollback mode', 'memory'].flatMap((where) =>
      Object.keys(asked).map((ask) => ({ begun, where, ask })),
    ),
  )

  it.each(cases)(
    'answers nothing that a rollback undoes: $ask, $where, $begun',
    async ({ begun, where, ask }) => {
      const path = where === 'memory' ? ':memory:' : place.url.slice('sqlite:'.length)
      const database = openDatabase(path)
      if (where === 'a file') database.exec('PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5')
      database.exec('CREATE TABLE entries (line TEXT)')
      const store = sqliteStore(database)
      const name = 'a name'
      const held = request(name)
      if (ask !== 'claim') await store.claim(held, 1000)
      if (ask === 'claim of a known name') await store.release(held, undefined, 1000)

      for (const sql of BEGINS[begun as keyof typeof BEGINS]) run(database, sql)
      const told: Told = await asked[ask as keyof typeof asked](store, name, { held })
      for (const sql of UNDO) database.exec(sql)

      const seen = await store.inspect(name, 1000)
      if ('kind' in seen) throw seen.cause
      const holder = seen.holders.find(({ id }) => id === told.id)
      expect(holder !== undefined).toBe(told.sure ? told.held : holder !== undefined)
      expect((holder?.expiresIn ?? 0) > 30_000).toBe(told.longer === true)
      // What could not be had in there can be had now.
      expect(await store.claim(request('another'), 1000)).toMatchObject({ kind: 'held' })
      await store.close()
      database.close()
    },
  )

  it('does not tell the user’s transaction what others do with locks, nor ends it', async () => {
    const database = openDatabase(':memory:')
    database.exec('CREATE TABLE entries (line TEXT)')
    const store = sqliteStore(database)
    database.exec('BEGIN')
    database.exec(`INSERT INTO entries VALUES ('mine')`)
    expect(await store.claim(request('a'), 100)).toMatchObject({
      kind: 'unknown',
      cause: { message: expect.stringContaining('in a transaction') as unknown },
    })
    database.exec('COMMIT')
    expect(database.prepare('SELECT line FROM entries').all()).toMatchObject([{ line: 'mine' }])
    await store.close()
    database.close()
  })
})

function run(database: SqliteDatabase, sql: string): void {
  if (sql.startsWith('SELECT')) database.prepare(sql).all()
  else database.exec(sql)
}
