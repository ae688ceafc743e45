import { expect, it } from 'vitest'

import { ALL } from '../../../src/core/contract.ts'
import { overlapsOf } from '../../../src/lab/live/overlaps.ts'
import type { Hold } from '../../../src/testkit/holds.ts'

const hold = (process: string, from: bigint, to: bigint, more: Partial<Hold> = {}): Hold => ({
  process,
  op: 1,
  name: 'n',
  weight: ALL,
  capacity: ALL,
  token: from,
  laterTokens: [],
  invoked: from,
  queued: undefined,
  from,
  to,
  ...more,
})

it('shows where two believed at once that they alone hold a name', () => {
  expect(overlapsOf([hold('a', 1n, 10n), hold('b', 8n, 20n), hold('c', 20n, 30n)])).toMatchObject([
    { from: 8n, to: 10n, clients: ['a', 'b'] },
  ])
})

it('shows no reader beside a writer that only reads by then, and one beside it before that', () => {
  const writer = hold('a', 1n, 10n, { readsFrom: 5n })
  expect(overlapsOf([writer, hold('b', 6n, 12n, { weight: 1 })])).toEqual([])
  expect(overlapsOf([writer, hold('b', 3n, 12n, { weight: 1 })])).toMatchObject([{ from: 3n, to: 5n }])
})
