import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { emptyQueue } from '../../../src/core/claim-queue.ts'
import { fromRecord, takeUp, toRecord } from '../../../src/core/queue-record.ts'
import type { QueueRecord } from '../../../src/core/queue-record.ts'
import { actions, QueueWorld } from './queue-world.ts'
import type { Done } from './queue-world.ts'

const onPaper = (record: QueueRecord): QueueRecord => JSON.parse(JSON.stringify(record)) as QueueRecord

/** When a lease could end is said at the earliest: a queue that has just been read knows it better. */
function withoutTimes(done: Done | undefined): string | undefined {
  return JSON.stringify(done, (key, value: unknown) =>
    key === 'retryAfter' ? undefined : typeof value === 'bigint' ? String(value) : value,
  )
}

describe('a queue that was written down and read again', () => {
  it('answers everything as it would have done', () => {
    for (const capacity of [1, 3]) {
      fc.assert(
        fc.property(actions(capacity), actions(capacity), (before, after) => {
          const kept = new QueueWorld(capacity)
          for (const action of before) kept.act(action)
          const read = new QueueWorld(capacity, fromRecord(onPaper(toRecord(kept.state))))
          read.requests.push(...kept.requests)
          read.ms = kept.ms
          Object.assign(read, { made: kept.requests.length })
          for (const session of kept.unreachable) read.unreachable.add(session)
          const ends = [...read.state.holders.values()].map(({ expiresAt }) => expiresAt)
          expect(read.state.nextExpiry).toBe(Math.min(...ends))
          for (const action of after) {
            const [expected, got] = [kept.act(action), read.act(action)]
            expect(withoutTimes(got)).toEqual(withoutTimes(expected))
          }
        }),
        { numRuns: 150 },
      )
    }
  })

  it('is a thing of its own: what happens to one changes nothing of the other', () => {
    fc.assert(
      fc.property(actions(3), actions(3), (before, after) => {
        const world = new QueueWorld(3)
        for (const action of before) world.act(action)
        const record = toRecord(world.state)
        const written = JSON.stringify(record)
        const read = fromRecord(record)
        for (const action of after) world.act(action)
        expect(JSON.stringify(record)).toBe(written)
        expect(JSON.stringify(toRecord(read))).toBe(written)
      }),
      { numRuns: 50 },
    )
  })

  it('gives no token that is not above the fence', () => {
    expect(fromRecord(undefined, 7).fence).toBe(7)
    expect(fromRecord(undefined).fence).toBe(0)
    expect(fromRecord(null, 7)).toEqual(emptyQueue(7))
    const record = { ...toRecord(emptyQueue(5)), capacity: 2 }
    expect(fromRecord(record, 9).fence).toBe(9)
    expect(fromRecord(record, 1).fence).toBe(5)
    const state = emptyQueue(8)
    takeUp(state, record)
    expect(state).toMatchObject({ fence: 8, capacity: 2 })
  })
})
