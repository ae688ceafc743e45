import { afterEach, expect, it, vi } from 'vitest'

import { ServeLog } from '../../../src/cli/serve/log.ts'

afterEach(() => void vi.restoreAllMocks())

it('keeps no more than a megabyte for who does not read its stderr', () => {
  let unread = 0
  vi.spyOn(process.stderr, 'writableLength', 'get').mockImplementation(() => unread)
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    unread += text.length
    return false
  })
  const log = new ServeLog({})
  for (let line = 0; line < 20_000; line++) log.say('warn', 'refused', 'x'.repeat(100))
  expect(unread).toBeGreaterThan(1_000_000)
  expect(unread).toBeLessThan(1_100_000)
  // Read again, it is told more.
  unread = 0
  log.say('info', 'ready', 'locks are granted')
  expect(unread).toBeGreaterThan(0)
})
