import { afterEach, expect, it, vi } from 'vitest'

import type { Unknown } from '../../../../src/core/contract.ts'
import { DatabaseError } from '../../../../src/stores/sql/failure.ts'
import type { Row } from '../../../../src/stores/sql/row.ts'
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

const NOW = 1_795_032_920_016_814

/** Left by somebody who died a second ago. */
const left = (index: number): Row => ({
  name: String(index).padStart(9, '0'),
  version: 7,
  capacity: 1,
  fence: 2,
  waiting: 0,
  claim: `s.${index}`,
  owner: 'test',
  weight: 1,
  token: 2,
  tokens: 1,
  expires: NOW - 1_000_000,
  queue: null,
  now: NOW,
})

it.each([0, 1, 30, 2000])('forgets what the dead have left at a server that takes %d ms', async (latency) => {
  let time = 0
  vi.spyOn(performance, 'now').mockImplementation(() => time)
  const answer = <T>(value: T): Promise<T> => {
    time += latency
    return Promise.resolve(value)
  }
  let rows = Array.from({ length: 450 }, (_, index) => left(index))
  const statements = {
    page: (_: object, after: string, limit: number) =>
      answer(rows.filter(({ name }) => name > after).slice(0, limit)),
    drop: (_: object, names: readonly string[]) => {
      const before = rows.length
      rows = rows.filter(({ name, claim }) => claim !== null || !names.includes(name))
      return answer(before - rows.length)
    },
  }
  const settle = (_: object, { name }: Row): Promise<void> => {
    rows = rows.map((row) => (row.name === name ? { ...row, claim: null } : row))
    return answer(undefined)
  }
  const call = async <T>(timeout: number, work: (link: object) => Promise<T>): Promise<T | Unknown> => {
    const until = time + timeout
    const result = await work({})
    return time <= until + 2 * latency ? result : { kind: 'unknown', cause: new Error('late') }
  }
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((go: () => void) => {
    queueMicrotask(go)
  }) as never)
  // It takes its timers when it is loaded.
  vi.resetModules()
  const { Tidying: Loaded } = await import('../../../../src/stores/sql/tidy.ts')
  const tidying = new Loaded({ kind: 'test', statements, slack: () => 1, call, settle }, 0)
  expect(await tidying.all(0)).toEqual({ looked: 450, removed: 450 })
  expect(rows).toEqual([])
})
