import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { Deadline, Deadlines } from '../../../../src/stores/redis/deadlines.ts'

class Note extends Deadline {
  expired = false
  override expire(): void {
    this.expired = true
  }
}

class Ordered extends Deadline {
  private readonly order: number[]
  readonly ms: number
  constructor(order: number[], ms: number) {
    super()
    this.order = order
    this.ms = ms
  }
  override expire(): void {
    this.order.push(this.ms)
  }
}

describe('the deadlines of requests', () => {
  it('come in their order, without those that were removed', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ ms: fc.integer({ min: 1, max: 1_000 }), removed: fc.boolean() })),
        (wanted) => {
          const deadlines = new Deadlines()
          const order: number[] = []
          const entries = wanted.map(({ ms }) => new Ordered(order, ms * 1_000))
          for (const entry of entries) deadlines.add(entry, entry.ms)
          entries.forEach((entry, at) => wanted[at]?.removed === true && deadlines.remove(entry))
          deadlines.expireAll()
          const left = wanted.filter(({ removed }) => !removed).map(({ ms }) => ms * 1_000)
          expect(order).toEqual(left.toSorted((a, b) => a - b))
        },
      ),
    )
  })

  it('cost no more when a hundred thousand with different timeouts are open', () => {
    const deadlines = new Deadlines()
    const notes = Array.from({ length: 100_000 }, () => new Note())
    const began = process.cpuUsage()
    // Each earlier than the one before: the worst case of a list that is searched from its end.
    notes.forEach((note, at) => deadlines.add(note, 600_000 - at))
    for (const note of notes) deadlines.remove(note)
    // A linear search would take half a minute. What others use of the machine does not count.
    expect(process.cpuUsage(began).user / 1_000).toBeLessThan(3_000)
    deadlines.expireAll()
    expect(notes.some(({ expired }) => expired)).toBe(false)
  })

  it('leave the event loop its turns when thousands come at once', async () => {
    const deadlines = new Deadlines()
    deadlines.holdProcess(true)
    const notes = Array.from({ length: 5_000 }, () => new Note())
    for (const note of notes) deadlines.add(note, 1)
    const expired = (): number => notes.filter((note) => note.expired).length
    const seen = new Set<number>()
    while (expired() < notes.length) {
      await new Promise(setImmediate)
      seen.add(expired())
    }
    expect(seen.size).toBeGreaterThan(5)
    deadlines.holdProcess(false)
  })

  it('come by themselves', async () => {
    const deadlines = new Deadlines()
    deadlines.holdProcess(true)
    const [late, soon] = [new Note(), new Note()]
    deadlines.add(late, 60_000)
    deadlines.add(soon, 5)
    await expect.poll(() => soon.expired).toBe(true)
    expect(late.expired).toBe(false)
    deadlines.expireAll()
    expect(late.expired).toBe(true)
  })
})
