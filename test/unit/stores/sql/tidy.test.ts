import { afterEach, expect, it, vi } from 'vitest'

import type { Unknown } from '../../../../src/core/contract.ts'
import { DatabaseError } from '../../../../src/stores/sql/causes.ts'
import { Tidying } from '../../../../src/stores/sql/tidy.ts'

afterEach(() => vi.restoreAllMocks())

it.each([
  ['goes on after a connection was in somebody’s transaction', 'HOLDFAST_AUTOCOMMIT', 2],
  ['gives up where it has no right to delete', '42501', 1],
])('%s', async (_, code, calls) => {
  vi.spyOn(Math, 'random').mockReturnValue(0)
  const refusal: Unknown = { kind: 'unknown', cause: new DatabaseError('no', code), retryable: false }
  const call = vi.fn<() => Promise<Unknown>>(() => Promise.resolve(refusal))
  const statements = { page: () => Promise.resolve([]), drop: () => Promise.resolve(0) }
  const tools = { kind: 'test', statements, slack: () => 1, call, settle: () => Promise.resolve() }
  const tidying = new Tidying(tools, 0)
  tidying.madeRow('a')
  await vi.waitFor(() => expect(call).toHaveBeenCalledTimes(1))
  await new Promise((resolve) => setTimeout(resolve, 1))
  tidying.madeRow('b')
  expect(call).toHaveBeenCalledTimes(calls)
})
