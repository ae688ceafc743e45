import { expect, it } from 'vitest'

import type { Store, StoreEvent, StoreListener, Watch } from '../../src/core/contract.ts'
import { ClaimRegistry } from '../../src/server/claim-registry.ts'
import { ANYBODY } from '../../src/server/rights.ts'
import { DEFAULT_LIMITS } from '../../src/server/limits.ts'
import { Sessions } from '../../src/server/sessions.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { afterwards } from './helpers.ts'

it('goes on telling a session on its new connection when the old one ends late', async () => {
  const book = new ClaimRegistry('memory')
  afterwards(() => book.close())
  const sessions = new Sessions(memoryStore(), book, DEFAULT_LIMITS)
  const caller = { principal: ANYBODY, remote: '-', request: '-' }
  const [told, toldBefore]: [StoreEvent[], StoreEvent[]] = [[], []]
  const before = (await sessions.watch('s', caller, (event) => void toldBefore.push(event), 1000)) as Watch
  const now = (await sessions.watch('s', caller, (event) => void told.push(event), 1000)) as Watch
  before.stop()
  sessions.tell('s.1', { kind: 'contended', name: 'a', id: 's.1' })
  expect([told.length, toldBefore.length]).toEqual([1, 0])
  now.stop()
  sessions.tell('s.1', { kind: 'contended', name: 'a', id: 's.1' })
  expect(told).toHaveLength(1)
})

/** A store whose watches are answered when the test says so; to stop one is to stop all of its session, as some do. */
function slowStore(): { store: Store; answers: ((fails: boolean) => void)[]; listeners: Set<StoreListener> } {
  const answers: ((fails: boolean) => void)[] = []
  const listeners = new Set<StoreListener>()
  const watch = (_session: string, listener: StoreListener): Promise<Watch> => {
    listeners.add(listener)
    return new Promise((resolve, reject) =>
      answers.push((fails) =>
        fails
          ? reject(new Error('the driver threw'))
          : resolve({ kind: 'watching', stop: () => listeners.clear() }),
      ),
    )
  }
  return { store: Object.assign(memoryStore(), { watch }), answers, listeners }
}

it('asks a slow store once for a session whose client comes back before the answer', async () => {
  const book = new ClaimRegistry('memory')
  afterwards(() => book.close())
  const { store, answers, listeners } = slowStore()
  const sessions = new Sessions(store, book, DEFAULT_LIMITS)
  const caller = { principal: ANYBODY, remote: '-', request: '-' }
  const told: string[] = []
  const before = sessions.watch('s', caller, () => void told.push('before'), 1000)
  const now = sessions.watch('s', caller, () => void told.push('now'), 1000)
  expect(answers).toHaveLength(1)
  answers[0]?.(false)
  const [first, second] = (await Promise.all([before, now])) as [Watch, Watch]
  // The old connection is gone.
  first.stop()
  for (const listener of listeners) listener({ kind: 'contended', name: 'a', id: 's.1' })
  expect(told).toEqual(['now'])
  second.stop()
  expect(listeners.size).toBe(0)
})

it('asks again for a session when the store has thrown', async () => {
  const book = new ClaimRegistry('memory')
  afterwards(() => book.close())
  const { store, answers } = slowStore()
  const sessions = new Sessions(store, book, DEFAULT_LIMITS)
  const watch = (): Promise<unknown> =>
    Promise.resolve(
      sessions.watch('s', { principal: ANYBODY, remote: '-', request: '-' }, () => undefined, 1000),
    )
  const first = watch()
  answers[0]?.(true)
  await expect(first).rejects.toThrow('the driver threw')
  const second = watch()
  answers[1]?.(false)
  expect(await second).toMatchObject({ kind: 'watching' })
})
