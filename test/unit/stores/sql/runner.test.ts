import { describe, expect, it } from 'vitest'

import { optimistic } from '../../../../src/stores/postgres/index.ts'
import { insideTransaction, runChange, runRows } from '../../../../src/stores/sql/runner.ts'

const told = (result: unknown) => (): unknown => result

describe('a function that runs SQL', () => {
  it.each([
    ['rows', [{ a: 1 }]],
    ['rows, later', Promise.resolve([{ a: 1 }])],
    ['what pg says', { rows: [{ a: 1 }], rowCount: 1 }],
    ['what mysql2 says', [[{ a: 1 }], [{ name: 'a' }]]],
    ['what TypeORM says', [[{ a: 1 }], 1]],
  ])('may resolve with %s', async (_, result) => {
    expect(await runRows(told(result), 'SELECT', [])).toEqual([{ a: 1 }])
  })

  it.each([[[]], [{ rows: [] }], [[[], 0]]])('may resolve with no rows: %j', async (result) => {
    expect(await runRows(told(result), 'SELECT', [])).toEqual([])
  })

  it.each([undefined, null, 1, 'rows', {}, [1], { rows: 1 }])(
    'must resolve with rows, not %j',
    async (result) => {
      await expect(runRows(told(result), 'SELECT', [])).rejects.toMatchObject({ argument: 'run' })
    },
  )

  it.each([
    ['a number', 1, true],
    ['a big one', 1n, true],
    ['what mysql2 says', [{ affectedRows: 1, warningStatus: 0 }, undefined], false],
    ['what mysql2 says with a warning', { affectedRows: 1, warningStatus: 1 }, true],
    ['what Kysely says', { numAffectedRows: 1n, rows: [] }, true],
  ])('may resolve with %s for an UPDATE', async (_, result, altered) => {
    expect(await runChange(told(result), 'UPDATE', [])).toEqual({ rows: 1, altered })
  })

  it.each([undefined, [], { rows: [] }, '1'])(
    'must tell how many rows it changed, not %j',
    async (result) => {
      await expect(runChange(told(result), 'UPDATE', [])).rejects.toMatchObject({ argument: 'run' })
    },
  )

  it.each([
    ['as the driver has it', { code: '25P01' }],
    ['as a cause', new Error('x', { cause: Object.assign(new Error('y'), { code: '25P01' }) })],
    ['deep inside', { meta: { driverAdapterError: { cause: { originalCode: '1305' } } } }],
  ])('is refused outside of a transaction, told %s', async (_, error) => {
    const run = (sql: string): unknown => (sql.startsWith('RELEASE') ? Promise.reject(error as Error) : [])
    await expect(insideTransaction(run, () => Promise.resolve(1))).rejects.toMatchObject({ argument: 'tx' })
  })

  it.each([
    { id: 1, rowVersion: '7' },
    { Id: 1, ROW_VERSION: '7' },
    { rowVersion: '6', row_version: '7' },
  ])('finds the count by what an ORM has made of its name: %j', async (row) => {
    const written: unknown[][] = []
    const run = (sql: string, params: unknown[]): unknown => {
      if (sql.startsWith('SELECT')) return [row]
      written.push(params)
      return [{ changed: 1 }]
    }
    const bonus = optimistic(run, { table: 'bonus', key: 'id', version: 'row_version' })
    expect(await bonus.update(1, () => ({ left_count: 3 }))).toMatchObject({ kind: 'updated', row })
    expect(written).toEqual([[3, 1, '7']])
  })

  it('looks again when a guard that came later, in the same transaction, was faster', async () => {
    const savepoints = new Set<string>()
    // As MySQL does it: one of the same name takes the other's place, and is released for both.
    const run = (sql: string): Promise<unknown[]> => {
      const name = sql.split(' ').at(-1) ?? ''
      if (!sql.startsWith('RELEASE')) savepoints.add(name)
      else if (!savepoints.delete(name)) return Promise.reject(Object.assign(new Error(sql), { errno: 1305 }))
      return Promise.resolve([])
    }
    let looks = 0
    const first = insideTransaction(run, async () => {
      if ((looks += 1) === 1) await insideTransaction(run, () => Promise.resolve())
      return looks
    })
    expect(await first).toBe(2)
  })

  it('passes on what else goes wrong', async () => {
    const gone = Object.assign(new Error('gone'), { code: 'ECONNRESET' })
    await expect(
      insideTransaction(
        () => Promise.reject(gone),
        () => Promise.resolve(1),
      ),
    ).rejects.toBe(gone)
  })
})
