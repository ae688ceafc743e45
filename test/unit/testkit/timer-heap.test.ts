import fc from 'fast-check'
import { expect, it } from 'vitest'

import { TimerHeap } from '../../../src/testkit/timer-heap.ts'

it('gives timers back sorted by due time, then by rank', () => {
  const timers = fc.array(fc.record({ due: fc.nat(20), rank: fc.double({ min: 0, max: 1, noNaN: true }) }))
  fc.assert(
    fc.property(timers, (items) => {
      const heap = new TimerHeap()
      for (const item of items) heap.push(item)
      const popped = items.map(() => heap.pop())
      expect(popped).toEqual(items.toSorted((a, b) => a.due - b.due || a.rank - b.rank))
      expect(heap.pop()).toBeUndefined()
    }),
  )
})
