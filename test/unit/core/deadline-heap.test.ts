import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { DeadlineHeap, HeapEntry } from '../../../src/core/deadline-heap.ts'

describe('a heap of deadlines', () => {
  it('gives the earliest first, of equals the one that came first, whatever was removed before', () => {
    const operation = fc.record({ at: fc.nat(20), remove: fc.nat(30), doRemove: fc.boolean() })
    // Times that grow, as those of a program do, or not.
    const pace = fc.constantFrom(0, 1, 10)
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 500, size: 'max' }), pace, (operations, step) => {
        const heap = new DeadlineHeap<HeapEntry>()
        let model: HeapEntry[] = []
        let now = 0
        for (const { at: later, remove, doRemove } of operations) {
          now += step
          const at = now + later
          if (doRemove && model.length > 0) {
            const victim = model[remove % model.length] as HeapEntry
            heap.remove(victim)
            model = model.filter((entry) => entry !== victim)
            if (victim.slot !== -1) throw new Error('A removed entry has a slot')
          } else {
            const entry = new HeapEntry()
            heap.add(entry, at)
            model.push(entry)
          }
          // A stable sort keeps those of one time in the order in which they came.
          expect(heap.first).toBe([...model].sort((a, b) => a.at - b.at)[0])
          expect(heap.size).toBe(model.length)
        }
        const drained: HeapEntry[] = []
        for (let first = heap.first; first !== undefined; first = heap.first) {
          heap.remove(first)
          drained.push(first)
        }
        expect(drained).toEqual([...model].sort((a, b) => a.at - b.at))
      }),
    )
  })

  it.each([
    ['from the front', (n: number) => n],
    ['from the back', (n: number) => 4999 - n],
    ['from anywhere', (n: number) => (n * 1777) % 5000],
  ])('keeps thousands in order that come in order and leave %s', (_, nth) => {
    const heap = new DeadlineHeap<HeapEntry>()
    const entries = Array.from({ length: 5000 }, (_, at) => {
      const entry = new HeapEntry()
      heap.add(entry, at)
      return entry
    })
    const left = new Set(entries)
    for (let n = 0; n < 4900; n++) {
      const entry = entries[nth(n)] as HeapEntry
      heap.remove(entry)
      left.delete(entry)
      expect(heap.size).toBe(left.size)
      expect(heap.first).toBe(left.values().next().value)
    }
    // They come again, as renewals do.
    for (const entry of left) {
      heap.remove(entry)
      heap.add(entry, 5000)
    }
    expect(heap.first).toBe(left.values().next().value)
    expect(heap.size).toBe(100)
  })

  it('takes Infinity for a time that comes after all others', () => {
    const heap = new DeadlineHeap<HeapEntry>()
    const entries = [Infinity, 5, Infinity, 1].map((at) => {
      const entry = new HeapEntry()
      heap.add(entry, at)
      return entry
    })
    const order: number[] = []
    for (let first = heap.first; first !== undefined; first = heap.first) {
      heap.remove(first)
      order.push(entries.indexOf(first))
    }
    expect(order).toEqual([3, 1, 0, 2])
  })

  it('looks at a few of fifteen thousand for each that comes or goes, however different they are', () => {
    let looks = 0
    class Counted extends HeapEntry {
      constructor() {
        super()
        let at = 0
        Object.defineProperty(this, 'at', {
          get: () => (looks++, at),
          set: (value: number) => {
            at = value
          },
        })
      }
    }
    const heap = new DeadlineHeap<Counted>()
    const count = 15_000
    const entries = Array.from({ length: count }, (_, n) => {
      const entry = new Counted()
      heap.add(entry, (n * 7919) % count)
      return entry
    })
    for (const entry of entries) heap.remove(entry)
    // Two looks for a comparison, two comparisons for a level, fourteen levels.
    expect(looks / count).toBeLessThan(2 * 2 * 14)
  })
})
