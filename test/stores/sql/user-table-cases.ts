import { expect, it } from 'vitest'

import type { FencedOptions, FencedTable } from '../../../src/stores/sql/fenced.ts'
import { ConflictError } from '../../../src/core/errors.ts'
import { skip } from '../../../src/stores/sql/optimistic.ts'
import type { OptimisticOptions, OptimisticTable } from '../../../src/stores/sql/optimistic.ts'

/** A database with the tables `bonus (id, left_count, version)` and `seat (id, owner, fence)`, as one driver sees it. */
export interface UserDatabase {
  optimistic(options: OptimisticOptions): OptimisticTable<Bonus>
  fenced(options: FencedOptions): FencedTable
  readonly sql: (text: string) => Promise<readonly Record<string, unknown>[]>
}

interface Bonus {
  readonly id: number
  readonly left_count: number
}

const BONUS = { table: 'bonus', key: 'id' }

/** What optimistic and fenced writes must do on every database. */
export function userTableCases(open: () => UserDatabase): void {
  const fresh = async (left: number): Promise<UserDatabase> => {
    const database = open()
    await database.sql('DELETE FROM bonus')
    await database.sql(`INSERT INTO bonus (id, left_count, version) VALUES (1, ${left}, 0)`)
    await database.sql('DELETE FROM seat')
    await database.sql(`INSERT INTO seat (id, owner, fence) VALUES (1, 'nobody', NULL)`)
    return database
  }
  const takeOne = ({ left_count }: Bonus): { left_count: number } | typeof skip =>
    left_count > 0 ? { left_count: left_count - 1 } : skip

  it('gives out a bonus exactly as often as there is one, to 50 takers at once', async () => {
    const database = await fresh(20)
    const bonus = database.optimistic({ ...BONUS, attempts: 200 })
    const results = await Promise.all(Array.from({ length: 50 }, () => bonus.update(1, takeOne)))
    expect(results.filter(({ kind }) => kind === 'updated')).toHaveLength(20)
    expect(results.filter(({ kind }) => kind === 'skipped')).toHaveLength(30)
    const [row] = await database.sql('SELECT left_count, version FROM bonus')
    expect([Number(row?.['left_count']), Number(row?.['version'])]).toEqual([0, 20])
  })

  it('gives up with a ConflictError when others are faster, and has changed nothing then', async () => {
    const database = await fresh(50)
    const bonus = database.optimistic({ ...BONUS, attempts: 1 })
    const results = await Promise.allSettled(Array.from({ length: 50 }, () => bonus.update(1, takeOne)))
    const failed = results.filter((result) => result.status === 'rejected')
    expect(failed.length).toBeGreaterThan(0)
    for (const { reason } of failed) {
      expect(reason).toBeInstanceOf(ConflictError)
      expect(reason).toMatchObject({ code: 'CONFLICT', attempts: 1 })
    }
    const [row] = await database.sql('SELECT left_count FROM bonus')
    expect(Number(row?.['left_count'])).toBe(failed.length)
  })

  it('tells an update of a row that is not there, and leaves a row alone that is skipped', async () => {
    const database = await fresh(1)
    const bonus = database.optimistic(BONUS)
    expect(await bonus.update(2, takeOne)).toEqual({ kind: 'missing' })
    expect(await bonus.update(1, () => skip)).toMatchObject({ kind: 'skipped', row: { left_count: 1 } })
  })

  it.each<[string, unknown]>([
    ['a text', '17'],
    ['a number', 17],
    ['nothing', undefined],
    ['an object without one', {}],
    ['less than nothing', -1n],
  ])('refuses a token that is none, before it writes: %s', async (_, token) => {
    const database = await fresh(1)
    const seat = database.fenced({ table: 'seat', key: 'id' })
    await expect(seat.update(1, token as bigint, { owner: 'me' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      argument: 'lease',
    })
    const [row] = await database.sql('SELECT owner, fence FROM seat')
    expect(row).toEqual({ owner: 'nobody', fence: null })
  })

  it.each<[string, () => unknown]>([
    ['a promise', () => Promise.resolve({ left_count: 0, owner: 'me' })],
    ['a map', () => new Map([['left_count', 0]])],
    ['a list', () => []],
    ['nothing', () => undefined],
    ['null', () => null],
    ['a text', () => 'left_count'],
    ['an undefined value', () => ({ left_count: undefined })],
  ])('refuses changes that are none, and counts no change: %s', async (_, changes) => {
    const database = await fresh(1)
    const refused = { code: 'INVALID_ARGUMENT', argument: 'change' }
    const bonus = database.optimistic(BONUS)
    await expect(bonus.update(1, () => changes() as object as Record<string, never>)).rejects.toMatchObject(
      refused,
    )
    const seat = database.fenced({ table: 'seat', key: 'id' })
    await expect(seat.update(1, 5n, changes() as Record<string, never>)).rejects.toMatchObject(refused)
    const [row] = await database.sql('SELECT version, fence FROM bonus, seat')
    expect([Number(row?.['version']), row?.['fence']]).toEqual([0, null])
  })

  it('takes odd values as they are, and refuses odd names', async () => {
    const database = await fresh(1)
    const odd = `'; DROP TABLE seat; -- \\' "`
    const seat = database.fenced({ table: 'seat', key: 'id' })
    expect(await seat.update(1, 5n, { owner: odd })).toBe('written')
    const [row] = await database.sql('SELECT owner FROM seat')
    expect(row?.['owner']).toBe(odd)
    await expect(seat.update(1, 6n, { 'owner = 1 --': odd })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
    expect(() => database.fenced({ table: 'seat"', key: 'id' })).toThrow(/table must be a name/)
    expect(() => database.optimistic({ table: 'bonus', key: '`id' })).toThrow(/key must be a name/)
    await expect(
      database.optimistic(BONUS).update(1, () => ({ left_count: 0, version: 9 })),
    ).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  it('takes several columns for a key, all of them and no others', async () => {
    const database = await fresh(1)
    const seat = database.fenced({ table: 'seat', key: ['id', 'owner'] })
    expect(await seat.update({ id: 1, owner: 'nobody' }, 5n, {})).toBe('written')
    expect(await seat.update({ id: 1, owner: 'somebody' }, 5n, {})).toBe('missing')
    expect(await seat.update({ owner: 'nobody', id: 1 }, 4n, {})).toBe('stale')
    const odd = [
      1,
      { id: 1 },
      { id: 1, owner: 'nobody', version: 1 },
      { id: 1, name: 'nobody' },
      {},
      null,
    ] as const
    for (const key of odd) {
      await expect(seat.update(key as never, 6n, {})).rejects.toMatchObject({ argument: 'key' })
    }
    await expect(seat.update({ id: 1, owner: null } as never, 6n, {})).rejects.toMatchObject({
      argument: 'key',
    })
    const bonus = database.optimistic({ table: 'bonus', key: ['id', 'left_count'] })
    expect(await bonus.update({ id: 1, left_count: 2 }, () => ({}))).toEqual({ kind: 'missing' })
    expect(await bonus.update({ id: 1, left_count: 1 }, () => ({}))).toMatchObject({ kind: 'updated' })
    await expect(bonus.update({ id: 1, left_count: 1 }, () => ({ left_count: 0 }))).rejects.toMatchObject({
      argument: 'change',
    })
    expect(await database.optimistic({ table: 'bonus', key: ['id'] }).update(1, () => skip)).toMatchObject({
      kind: 'skipped',
    })
    expect(() => database.optimistic({ table: 'bonus', key: [] })).toThrow(/key must name a column/)
  })

  it('finds a row by a number also in a column of texts', async () => {
    const database = await fresh(0)
    await database.sql('DROP TABLE IF EXISTS coded')
    await database.sql('CREATE TABLE coded (code VARCHAR(20) PRIMARY KEY, owner VARCHAR(20), fence BIGINT)')
    await database.sql(`INSERT INTO coded (code, owner) VALUES ('5', 'nobody'), ('3000000000', 'nobody')`)
    const coded = database.fenced({ table: 'coded', key: 'code' })
    for (const code of [5, 3_000_000_000, 5n, '5']) {
      expect(await coded.update(code, 7n, { owner: 'me' })).toBe('written')
    }
    expect(await coded.update(6, 7n, { owner: 'me' })).toBe('missing')
  })

  it('never lets an older token write, also not to a column of texts', async () => {
    const database = await fresh(0)
    await database.sql('DROP TABLE IF EXISTS loose')
    await database.sql('CREATE TABLE loose (id INTEGER PRIMARY KEY, owner VARCHAR(20), fence VARCHAR(30))')
    await database.sql(`INSERT INTO loose (id, owner, fence) VALUES (1, 'nobody', NULL)`)
    const loose = database.fenced({ table: 'loose', key: 'id' })
    // A server that does not compare texts with numbers refuses both.
    const newer = await loose.update(1, 10n, { owner: 'newer' }).catch(() => 'refused')
    expect(await loose.update(1, 9n, { owner: 'older' }).catch(() => 'refused')).not.toBe('written')
    const [row] = await database.sql('SELECT owner FROM loose')
    expect(row?.['owner']).toBe(newer === 'written' ? 'newer' : 'nobody')
  })

  it('writes with a token, again with the same and with a larger one, and tells stale from missing', async () => {
    const database = await fresh(1)
    const seat = database.fenced({ table: 'seat', key: 'id' })
    const token = 1_794_780_646_347_432n
    expect(await seat.update(1, { token }, { owner: 'a' })).toBe('written')
    expect(await seat.update(1, token, { owner: 'a' })).toBe('written')
    expect(await seat.update(1, token + 1n, { owner: 'b' })).toBe('written')
    expect(await seat.update(1, token, { owner: 'a' })).toBe('stale')
    expect(await seat.update(2, token, { owner: 'a' })).toBe('missing')
    const [row] = await database.sql('SELECT owner, fence FROM seat')
    expect([row?.['owner'], String(row?.['fence'])]).toEqual(['b', String(token + 1n)])
  })
}

/** The same database, and a connection of it on which a transaction is open. */
export interface UserTransaction extends UserDatabase {
  readonly end: (how: 'COMMIT' | 'ROLLBACK') => Promise<void>
}

interface TransactionWorld {
  readonly outside: () => UserDatabase
  readonly begin: (isolation: string) => Promise<UserTransaction>
  /** What the server says when it undid a whole transaction. */
  readonly deadlock: string
}

const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code

/** Inside of a transaction of the user's nothing is tried again, whatever the server does to it. */
export function userTransactionCases(open: () => TransactionWorld): void {
  const fresh = async (): Promise<TransactionWorld> => {
    const world = open()
    const { sql } = world.outside()
    for (const table of ['bonus', 'seat', 'entries']) await sql(`DELETE FROM ${table}`)
    await sql('INSERT INTO bonus (id, left_count, version) VALUES (1, 9, 0), (2, 9, 0)')
    await sql(`INSERT INTO seat (id, owner, fence) VALUES (1, 'nobody', 5)`)
    return world
  }
  const less = ({ left_count }: Bonus): { left_count: number } => ({ left_count: left_count - 1 })
  const lefts = async ({ outside }: TransactionWorld): Promise<number[]> =>
    (await outside().sql('SELECT left_count FROM bonus ORDER BY id')).map((row) => Number(row['left_count']))

  it.each(['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'])(
    'updates a row there under %s',
    async (isolation) => {
      const world = await fresh()
      const tx = await world.begin(isolation)
      expect(await tx.optimistic(BONUS).update(1, less)).toMatchObject({ kind: 'updated', attempts: 1 })
      expect(await tx.fenced({ table: 'seat', key: 'id' }).update(1, 7n, { owner: 'me' })).toBe('written')
      await tx.end('ROLLBACK')
      expect(await lefts(world)).toEqual([9, 9])
    },
  )

  it('reports that somebody was faster, and tries nothing again', async () => {
    const world = await fresh()
    const tx = await world.begin('REPEATABLE READ')
    await tx.sql('SELECT * FROM bonus')
    await tx.sql(`INSERT INTO entries VALUES ('before')`)
    await world.outside().optimistic(BONUS).update(1, less)
    let asked = 0
    const error: unknown = await tx
      .optimistic(BONUS)
      .update(1, (row) => {
        asked++
        return less(row)
      })
      .catch((reason: unknown) => reason)
    // A server that looks at it so undoes the transaction; another one changes no row.
    expect(['CONFLICT', '40001', 'ER_CHECKREAD']).toContain(codeOf(error))
    expect(asked).toBe(1)
    await tx.end('ROLLBACK')
    expect(await world.outside().sql('SELECT line FROM entries')).toEqual([])
    expect(await lefts(world)).toEqual([8, 9])
  })

  it('writes nothing by itself after the server undid the transaction because of a deadlock', async () => {
    const world = await fresh()
    const [tx, heavy] = [await world.begin('READ COMMITTED'), await world.begin('READ COMMITTED')]
    // The server ends the one that has done less.
    for (let line = 0; line < 30; line++) await heavy.sql(`INSERT INTO entries VALUES ('heavy ${line}')`)
    await heavy.sql('UPDATE bonus SET left_count = 5 WHERE id = 1')
    await tx.sql(`INSERT INTO entries VALUES ('half of a ledger')`)
    await tx.sql('UPDATE bonus SET left_count = 4 WHERE id = 2')
    const other = heavy.sql('UPDATE bonus SET left_count = 5 WHERE id = 2').catch((error: unknown) => error)
    const mine: unknown = await tx
      .optimistic(BONUS)
      .update(1, less)
      .catch((error: unknown) => error)
    const victim = codeOf(mine) === world.deadlock ? tx : heavy
    expect([codeOf(mine), codeOf(await other)]).toContain(world.deadlock)
    await tx.end('ROLLBACK')
    await heavy.end('ROLLBACK')
    expect(victim).toBeDefined()
    expect(await world.outside().sql('SELECT line FROM entries')).toEqual([])
    expect(await lefts(world)).toEqual([9, 9])
  })

  it.each(['READ COMMITTED', 'REPEATABLE READ'])(
    'a fenced update ends under %s after a later holder wrote',
    async (isolation) => {
      const world = await fresh()
      const tx = await world.begin(isolation)
      await tx.sql('SELECT * FROM seat')
      expect(
        await world.outside().fenced({ table: 'seat', key: 'id' }).update(1, 9n, { owner: 'later' }),
      ).toBe('written')
      const result = await tx
        .fenced({ table: 'seat', key: 'id' })
        .update(1, 7n, { owner: 'late' })
        .catch((error: unknown) => codeOf(error))
      expect(['stale', '40001', 'ER_CHECKREAD']).toContain(result)
      await tx.end('ROLLBACK')
    },
  )
}
