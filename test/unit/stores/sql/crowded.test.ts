import { describe, expect, it } from 'vitest'

import type { Capabilities, ClaimAnswer } from '../../../../src/core/contract.ts'
import type { Driver, Effects, Statements } from '../../../../src/stores/sql/client.ts'
import { linesOn } from '../../../../src/stores/sql/lines.ts'
import type { Columns, Row } from '../../../../src/stores/sql/row.ts'
import { SCHEMA_VERSION } from '../../../../src/stores/sql/schema.ts'
import { SqlStore } from '../../../../src/stores/sql/store.ts'

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {}
  const promise = new Promise<void>((done) => (resolve = done))
  return { promise, resolve }
}

const ROW: Row = {
  name: 'crowded',
  version: 1,
  capacity: 1,
  fence: 1,
  waiting: 0,
  claim: 'holder',
  owner: 'other',
  weight: 1,
  token: 1,
  tokens: 1,
  expires: 2e12,
  queue: null,
  now: 1e12,
}

const REQUEST = {
  name: 'crowded',
  id: 'late.1',
  weight: 1,
  capacity: 1,
  ttl: 5000,
  patience: 5000,
  tokens: 1,
  whenBusy: 'queue',
  owner: 'test',
} as const

/** A server that answers at once, and on which somebody else is always faster. */
function crowded(): { store: SqlStore<object>; attempts: () => number } {
  let attempts = 0
  const statements = {
    schemaVersion: () => Promise.resolve(SCHEMA_VERSION),
    take: () => Promise.resolve({ row: ROW }),
    read: () => Promise.resolve([ROW]),
    swap: () => {
      attempts += 1
      return Promise.resolve(false)
    },
  } as unknown as Statements<object>
  const driver: Driver<object> = { borrow: (_, work) => work({}), close: () => Promise.resolve() }
  const store = new SqlStore<object>({
    kind: 'crowded',
    capabilities: { wakeups: 'poll' } as Capabilities,
    driver,
    statements,
    migrate: false,
    isFinal: () => false,
  })
  return { store, attempts: () => attempts }
}

describe('a connection on which nothing can be written', () => {
  it('is told to whoever lent the connection, also if several asked it together', async () => {
    for (const code of ['25006', 'ER_OPTION_PREVENTS_STATEMENT', '42501', 'ER_TABLE_NOT_LOCKED']) {
      const told: unknown[] = []
      const refused = (): Promise<never> => Promise.reject(Object.assign(new Error('reads only'), { code }))
      const statements = {
        schemaVersion: () => Promise.resolve(SCHEMA_VERSION),
        take: refused,
        read: () => Promise.resolve([ROW]),
        swap: refused,
      } as unknown as Statements<object>
      const driver: Driver<object> = {
        borrow: (_, work) =>
          work({}).catch((error: unknown) => {
            told.push(error)
            throw error
          }),
        close: () => Promise.resolve(),
      }
      const capabilities = { wakeups: 'poll' } as Capabilities
      const isFinal = (): boolean => false
      const lines = linesOn(driver, 'table')
      const store = new SqlStore<object>({
        kind: 'reads',
        capabilities,
        driver,
        statements,
        migrate: false,
        isFinal,
        lines,
      })
      const ids = ['a.1', 'b.1', 'c.1']
      const answers = await Promise.all(ids.map(async (id) => store.claim({ ...REQUEST, id }, 5000)))
      expect(answers.map(({ kind }) => kind)).toEqual(['unknown', 'unknown', 'unknown'])
      // The first went alone, the others together.
      expect(told).toHaveLength(2)
    }
  })
})

/** A row of which nobody may end a claim that is held, as long as a transaction is guarded there. */
function guardedRow(): { store: SqlStore<object>; endGuard: () => void } {
  let row: Row = { ...ROW, capacity: 2 }
  let guarded = true
  const statements = {
    schemaVersion: () => Promise.resolve(SCHEMA_VERSION),
    take: () => Promise.resolve({ row }),
    read: () => Promise.resolve([row]),
    swap: (_: object, seen: Row, next: Columns, { ended }: Effects) => {
      if (seen.version !== row.version || (guarded && ended.length > 0)) return Promise.resolve(false)
      row = { ...row, ...next, version: row.version + 1 }
      return Promise.resolve(true)
    },
  } as unknown as Statements<object>
  const driver: Driver<object> = { borrow: (_, work) => work({}), close: () => Promise.resolve() }
  const store = new SqlStore<object>({
    kind: 'guarded',
    capabilities: { wakeups: 'poll' } as Capabilities,
    driver,
    statements,
    migrate: false,
    isFinal: () => false,
    lines: linesOn(driver, 'table'),
  })
  return { store, endGuard: () => (guarded = false) }
}

describe('a claim that is given up beside a guarded transaction', () => {
  it('waits for the end of that, and those who are sent along do not', async () => {
    const { store, endGuard } = guardedRow()
    const claim = (id: string, whenBusy: 'queue' | 'try'): Promise<ClaimAnswer> =>
      Promise.resolve(store.claim({ ...REQUEST, capacity: 2, id, whenBusy }, 2000))
    // While the first is under way, the others come together.
    const first = claim('a.1', 'queue')
    let over = false
    const givenUp = store.withdraw({ name: ROW.name, id: 'holder' }, 20_000).finally(() => (over = true))
    const others = await Promise.all([claim('b.1', 'queue'), claim('c.1', 'try')])
    expect(await first).toMatchObject({ kind: 'held' })
    expect(others).toMatchObject([{ kind: 'queued' }, { kind: 'busy' }])
    expect(over).toBe(false)
    endGuard()
    expect(await givenUp).toEqual({ kind: 'released' })
  })
})

describe('a name that too many change at once', () => {
  it('is told from a server that does not answer, and may be asked for again', async () => {
    const { store } = crowded()
    const answer = await store.claim(REQUEST, 300)
    expect(answer).toMatchObject({ kind: 'unknown', cause: { code: 'CROWDED' } })
    expect(answer).not.toHaveProperty('retryable')
  })

  it('is left alone for longer after each step that others were faster than', async () => {
    const { store, attempts } = crowded()
    await store.claim(REQUEST, 1000)
    // With pauses of at most 32 ms there would be about sixty.
    expect(attempts()).toBeLessThan(25)
  })
})

describe('an answer that comes after its time', () => {
  it('is not kept for a claim that nobody asks about any more', async () => {
    const late = withResolvers()
    const over = withResolvers()
    const statements = {
      schemaVersion: () => Promise.resolve(SCHEMA_VERSION),
      take: () => Promise.resolve({ row: ROW }),
      read: () => Promise.resolve([ROW]),
      swap: async () => {
        await late.promise
        return true
      },
    } as unknown as Statements<object>
    const driver: Driver<object> = {
      borrow: (_, work) => work({}).finally(() => setImmediate(over.resolve)),
      close: () => Promise.resolve(),
    }
    const capabilities = { wakeups: 'poll' } as Capabilities
    const store = new SqlStore<object>({
      kind: 'late',
      capabilities,
      driver,
      statements,
      migrate: false,
      isFinal: () => false,
    })
    expect(await store.claim(REQUEST, 5)).toMatchObject({ kind: 'unknown' })
    late.resolve()
    await over.promise
    expect([...(store as unknown as { waiting: Set<string> }).waiting]).toEqual([])
  })
})

describe('a claim that leaves the line while it is asked about', () => {
  it('is not kept as one that waits, whether it is asked about alone or with others', async () => {
    for (const others of [[], ['other']]) {
      const rows = new Map(['crowded', ...others].map((name): [string, Row] => [name, { ...ROW, name }]))
      const answer = withResolvers()
      const asked = withResolvers()
      let hold = false
      const statements = {
        schemaVersion: () => Promise.resolve(SCHEMA_VERSION),
        take: (_: object, { name }: { name: string }) => Promise.resolve({ row: rows.get(name) }),
        read: async (_: object, names: readonly string[]) => {
          const found = names.map((name) => rows.get(name))
          if (hold) {
            hold = false
            asked.resolve()
            await answer.promise
          }
          return found
        },
        swap: (_: object, seen: Row, next: Columns) => {
          rows.set(seen.name, { ...seen, ...next, version: seen.version + 1 })
          return Promise.resolve(true)
        },
      } as unknown as Statements<object>
      const driver: Driver<object> = { borrow: (_, work) => work({}), close: () => Promise.resolve() }
      const store = new SqlStore<object>({
        kind: 'leaving',
        capabilities: { wakeups: 'poll' } as Capabilities,
        driver,
        statements,
        migrate: false,
        isFinal: () => false,
      })
      const requests = [...rows.keys()].map((name) => ({ ...REQUEST, name, id: `${name}.1`, tokens: 0 }))
      for (const request of requests)
        expect(await store.claim({ ...request, tokens: 1 }, 2000)).toMatchObject({ kind: 'queued' })
      hold = true
      const looking = store.renew(requests, 2000)
      await asked.promise
      expect(await store.withdraw({ name: 'crowded', id: 'crowded.1' }, 2000)).toEqual({ kind: 'released' })
      answer.resolve()
      expect((await looking)[0]).toMatchObject({ kind: 'queued' })
      const kept = [...(store as unknown as { waiting: Set<string> }).waiting]
      expect(kept).toEqual(others.map((name) => `${name}.1`))
    }
  })
})
