import { expect, it } from 'vitest'

import type { StoreEvent, Watch } from '../../src/core/contract.ts'
import { Book } from '../../src/server/book.ts'
import { ANYBODY } from '../../src/server/rights.ts'
import { DEFAULT_LIMITS } from '../../src/server/limits.ts'
import { Sessions } from '../../src/server/sessions.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { afterwards } from './helpers.ts'

it('goes on telling a session on its new connection when the old one ends late', async () => {
  const book = new Book('memory')
  afterwards(() => book.close())
  const sessions = new Sessions(memoryStore(), book, DEFAULT_LIMITS)
  const caller = { principal: ANYBODY }
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
