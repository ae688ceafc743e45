import { afterEach, beforeEach, expect, it } from 'vitest'

import { TestLocks } from 'holdfast/testing'

import { sell } from './tickets.ts'
import type { Tickets } from './tickets.ts'

let locks: TestLocks
beforeEach(() => void (locks = new TestLocks()))
afterEach(() => locks.close())

const tickets: Tickets = {
  left: async () => 1,
  take: async () => locks.assertHeld('train:G101'),
}

it('takes the ticket inside of the lock, and gives the lock back', async () => {
  expect(await sell(locks.holdfast, tickets)).toBe('sold')
  locks.assertNothingHeld()
  expect(locks.history).toMatchObject([{ name: 'train:G101', state: 'released' }])
})

it('waits for its turn', async () => {
  const theirs = await locks.others.mutex('train:G101').acquire()
  const selling = sell(locks.holdfast, tickets)
  await locks.advance(1500)
  await theirs.release()
  expect(await locks.until(selling)).toBe('sold')
})

it('gives up when its turn does not come in time', async () => {
  await locks.others.mutex('train:G101').acquire()
  await expect(locks.until(sell(locks.holdfast, tickets))).rejects.toThrow(
    expect.objectContaining({ code: 'LOCK_TIMEOUT' }),
  )
})

it('stops when the lock is lost', async () => {
  const slow: Tickets = {
    ...tickets,
    take: async ({ signal }) => {
      locks.lose('train:G101')
      signal.throwIfAborted()
    },
  }
  await expect(sell(locks.holdfast, slow)).rejects.toThrow(expect.objectContaining({ code: 'LOCK_LOST' }))
})

it('says so when the store is down, and sells when it is back', async () => {
  const mended = locks.down()
  await expect(locks.until(sell(locks.holdfast, tickets))).rejects.toThrow(
    expect.objectContaining({ code: 'STORE_UNAVAILABLE' }),
  )
  mended()
  expect(await locks.until(sell(locks.holdfast, tickets))).toBe('sold')
})
