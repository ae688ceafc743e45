import { describe, expect, it } from 'vitest'

import { ServerClock } from '../../../src/stores/memcached/server-clock.ts'
import type { ClockReading } from '../../../src/stores/memcached/server-clock.ts'

const END = 2_500_000

/** A server as it is: whole seconds, moved on by a timer that drifts, and that stands still while the server is stopped. */
class Server {
  private readonly drift: number
  private time = 0
  private nextTick: number

  constructor(phase: number, drift = 0.0011) {
    this.nextTick = phase
    this.drift = drift
  }

  /** Seconds left of the item at a moment, in seconds. */
  left(at: number): number {
    while (this.nextTick <= at) {
      this.time = Math.floor(this.nextTick)
      this.nextTick += 1 + this.drift
    }
    return END - this.time
  }

  /** What it tells at the end of a pause, before its timer runs. */
  staleAfter(pause: number, at: number): number {
    const left = this.left(at)
    this.nextTick = Math.max(this.nextTick, at + pause + 0.005)
    return left
  }
}

function read(clock: ServerClock, left: number, at: number): ClockReading {
  return clock.read(left, at * 1000, at * 1000 + 1)
}

describe('the clock of the server', () => {
  it('is right for hours, at any phase and however seldom it is read', () => {
    for (const phase of [0.001, 0.25, 0.5, 0.75, 0.999]) {
      for (const every of [0.26, 0.9, 7, 300]) {
        const clock = new ServerClock()
        const server = new Server(phase)
        clock.identify('one', server.left(1), 1000)
        for (let at = 1; at < 7200; at += every) expect(read(clock, server.left(at), at)).toBe('right')
      }
    }
  })

  it('is late after every pause that would cost a lock more than it was given', () => {
    for (const phase of [0.001, 0.3, 0.6, 0.999]) {
      for (let pause = 3.76; pause < 30; pause += 1.37) {
        const clock = new ServerClock()
        const server = new Server(phase)
        clock.identify('one', server.left(1), 1000)
        for (let at = 1; at < 60; at += 0.3) read(clock, server.left(at), at)
        const stale = server.staleAfter(pause, 60)
        expect(read(clock, stale, 60 + pause)).toBe('late')
        // As soon as its timer has run, it is right again.
        expect(read(clock, server.left(60 + pause + 0.02), 60 + pause + 0.02)).toBe('right')
      }
    }
  })

  it('is believed again when it has lost time for good', () => {
    const clock = new ServerClock()
    const server = new Server(0.5)
    clock.identify('one', server.left(10), 10_000)
    const readings: ClockReading[] = []
    // The machine slept for an hour, of which its clock knows nothing.
    for (let at = 11; at < 20; at += 0.5) readings.push(read(clock, server.left(at), at + 3600))
    expect(readings[0]).toBe('late')
    expect(readings.at(-1)).toBe('right')
    expect(readings.indexOf('right')).toBeGreaterThanOrEqual(6)
  })

  it('begins anew with another item', () => {
    const clock = new ServerClock()
    clock.identify('one', END - 1000, 1000)
    expect(clock.read(END, 2000, 2001)).toBe('late')
    clock.identify('two', END, 3000)
    expect(clock.read(END - 1, 4000, 4001)).toBe('right')
  })
})
