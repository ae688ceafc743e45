import { describe, expect, it } from 'vitest'

import { isBusy, named } from '../../../../src/stores/sqlite/failure.ts'

/** As each driver tells it. */
const drivers = {
  'node:sqlite': (errcode: number, message: string) =>
    Object.assign(new Error(message), { code: 'ERR_SQLITE_ERROR', errcode }),
  'node:sqlite of Deno': (_: number, message: string) =>
    Object.assign(new Error(message), { code: 'ERR_SQLITE_ERROR' }),
}

describe.each(Object.entries(drivers))('what %s tells', (_, told) => {
  it('is known to be busy', () => {
    expect(isBusy(told(5, 'database is locked'))).toBe(true)
    expect(isBusy(told(6, 'database table is locked'))).toBe(true)
    expect(isBusy(told(1, 'no such table: locks'))).toBe(false)
  })

  it('has a name where asking again is no use', () => {
    expect(named(told(26, 'file is not a database'))).toMatchObject({ code: 'SQLITE_NOTADB' })
    expect(named(told(8, 'attempt to write a readonly database'))).toMatchObject({ code: 'SQLITE_READONLY' })
    const other = told(1, 'near "x": syntax error')
    expect(named(other)).toBe(other)
  })
})

it('better-sqlite3 tells a name, and the words of others mean nothing', () => {
  expect(isBusy(Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY_SNAPSHOT' }))).toBe(true)
  expect(isBusy(new Error('database is locked'))).toBe(false)
})
