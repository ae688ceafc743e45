import { describe, expect, it } from 'vitest'

import type { Capabilities } from '../../../../src/core/contract.ts'
import type { Driver, Statements } from '../../../../src/stores/sql/client.ts'
import type { Row } from '../../../../src/stores/sql/row.ts'
import { SCHEMA_VERSION } from '../../../../src/stores/sql/schema.ts'
import { SqlStore } from '../../../../src/stores/sql/store.ts'

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
