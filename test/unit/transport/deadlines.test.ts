import { randomBytes } from 'node:crypto'

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { Alarm, Deadlines } from '../../../src/transport/deadlines.ts'

/** Notes what rings, in its order, and can be waited for. */
class Notes {
  readonly seen: string[] = []
  private readonly waiting = new Map<string, () => void>()

  alarm(what: string, then?: () => void): Alarm {
    return new Alarm(() => {
      this.seen.push(what)
      then?.()
      this.waiting.get(what)?.()
    })
  }

  of(what: string): Promise<void> {
    return new Promise((resolve) => void this.waiting.set(what, resolve))
  }
}

function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

describe('the deadlines of requests', () => {
  it('come in their order, without those that were removed', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ ms: fc.integer({ min: 1, max: 1_000 }), removed: fc.boolean() })),
        (wanted) => {
          const deadlines = new Deadlines()
          const order: number[] = []
          const alarms = wanted.map(({ ms }) => new Alarm(() => order.push(ms)))
          alarms.forEach((alarm, at) => deadlines.add(alarm, (wanted[at]?.ms ?? 0) * 1_000))
          alarms.forEach((alarm, at) => wanted[at]?.removed === true && deadlines.remove(alarm))
          deadlines.expireAll()
          const left = wanted.filter(({ removed }) => !removed).map(({ ms }) => ms)
          expect(order).toEqual(left.toSorted((a, b) => a - b))
        },
      ),
    )
  })

  it('expire in the order of their times, whatever the order in which they were set', async () => {
    const deadlines = new Deadlines({ holdProcess: true })
    const notes = new Notes()
    deadlines.add(notes.alarm('last'), 60)
    deadlines.add(notes.alarm('first'), 5)
    deadlines.add(notes.alarm('second'), 30)
    await notes.of('last')
    expect(notes.seen).toEqual(['first', 'second', 'last'])
  })

  it('never expire before their time', async () => {
    const deadlines = new Deadlines({ holdProcess: true })
    const notes = new Notes()
    const began = performance.now()
    deadlines.add(notes.alarm('late'), 20)
    await notes.of('late')
    expect(performance.now() - began).toBeGreaterThanOrEqual(20)
  })

  it('wait for what came while the event loop was blocked, and no longer', async () => {
    const deadlines = new Deadlines({ holdProcess: true })
    const notes = new Notes()
    const answered = notes.alarm('answered')
    deadlines.add(answered, 20)
    deadlines.add(notes.alarm('not answered'), 20)
    await new Promise((resolve) => void setImmediate(resolve))
    // From another thread, as from a socket: it is heard in the next turn of the loop, in which the timer comes first.
    randomBytes(16, () => deadlines.remove(answered))
    standStill(60)
    await notes.of('not answered')
    expect(notes.seen).toEqual(['not answered'])
  })

  it('say nothing when what they are for was done in time, and may be removed twice', async () => {
    const deadlines = new Deadlines({ holdProcess: true })
    const notes = new Notes()
    const done = notes.alarm('done in time')
    deadlines.add(done, 5)
    deadlines.add(notes.alarm('late'), 30)
    deadlines.remove(done)
    deadlines.remove(done)
    await notes.of('late')
    expect(notes.seen).toEqual(['late'])
  })

  it('may set others when they expire, and tell once of all that are late together', async () => {
    const told: number[] = []
    const notes = new Notes()
    const deadlines = new Deadlines({ holdProcess: true, onLate: () => void told.push(notes.seen.length) })
    deadlines.add(notes.alarm('last'), 60)
    deadlines.add(
      notes.alarm('first', () => deadlines.add(notes.alarm('second'), 5)),
      5,
    )
    const late = performance.now() - 100
    deadlines.add(notes.alarm('long ago'), 10, late)
    deadlines.add(notes.alarm('also'), 11, late)
    await notes.of('last')
    expect(notes.seen).toEqual(['long ago', 'also', 'first', 'second', 'last'])
    // Not after each of the two, and not when the timer found nothing.
    expect(told[0]).toBeGreaterThanOrEqual(2)
    expect(told.at(-1)).toBe(5)
  })

  it('leave the event loop its turns when thousands come at once', async () => {
    const deadlines = new Deadlines({ holdProcess: true })
    let expired = 0
    for (let n = 0; n < 5_000; n++) deadlines.add(new Alarm(() => expired++), 1)
    const seen = new Set<number>()
    while (expired < 5_000) {
      await new Promise(setImmediate)
      seen.add(expired)
    }
    expect(seen.size).toBeGreaterThan(5)
  })

  it('keep the process while there are some, if they are to', () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const none = timers()
    const [silent, holding] = [new Deadlines(), new Deadlines({ holdProcess: true })]
    const [one, other, third] = [new Alarm(() => {}), new Alarm(() => {}), new Alarm(() => {})]
    silent.add(one, 60_000)
    expect(timers()).toBe(none)
    silent.holdProcess(true)
    expect(timers()).toBe(none + 1)
    silent.holdProcess(false)
    expect(timers()).toBe(none)
    holding.add(other, 60_000)
    expect(timers()).toBe(none + 1)
    holding.remove(other)
    expect(timers()).toBe(none)
    holding.add(third, 70_000)
    expect(timers()).toBe(none + 1)
    holding.expireAll()
    silent.stop()
    expect(timers()).toBe(none)
  })
})
