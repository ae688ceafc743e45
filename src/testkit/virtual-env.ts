// From here, and not from the globals: a test runner's fake timers must not stop the world that stands in for them.
import { setImmediate } from 'node:timers'

import type { Instant } from '../core/claim-queue.ts'
import type { Env, Timer } from '../runtime/env.ts'
import { Random } from './random.ts'
import { TimerHeap } from './timer-heap.ts'
import type { HeapTimer } from './timer-heap.ts'

export interface VirtualEnvOptions {
  /** The same seed gives the same ids, the same jitter and the same order of timers that are due together. */
  readonly seed?: number | undefined
  /** Where the wall clock starts: milliseconds since 1970. */
  readonly wall?: number | undefined
}

/** By how much each clock jumps; a clock that is not named stays. */
export interface ClockJump {
  readonly mono?: number
  readonly boot?: number
  readonly wall?: number
}

interface VirtualTimer extends HeapTimer {
  readonly background: boolean
  /** Undefined once it was cancelled. */
  callback: (() => void) | undefined
}

const WALL_START = Date.UTC(2030, 0, 1)
const BOOT_START = 1_000_000
const DAY = 86_400_000

/** The event loop comes round only after every promise callback has run, and those that they led to. */
function promiseCallbacks(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}

/**
 * A world in which time passes only when a test says so. Timers run in the order of their due times, and all promise
 * callbacks are done before the next one runs, so that a run depends on nothing but its seed.
 */
export class VirtualEnv implements Env {
  private readonly clocks: { mono: number; boot: number; wall: number }
  private readonly chance: Random
  private readonly heap = new TimerHeap<VirtualTimer>()
  private readonly deferred: (() => void)[] = []
  private foreground = 0
  private background = 0

  constructor({ seed = 1, wall = WALL_START }: VirtualEnvOptions = {}) {
    this.chance = new Random(seed)
    this.clocks = { mono: 0, boot: BOOT_START, wall }
  }

  mono(): number {
    return this.clocks.mono
  }

  boot(): number {
    return this.clocks.boot
  }

  wall(): number {
    return this.clocks.wall
  }

  /** The store's clock, for `memoryStore({ now: () => env.instant() })`. */
  instant(): Instant {
    return { ms: this.clocks.mono, micros: Math.floor(this.clocks.wall * 1000) }
  }

  random(): number {
    return this.chance.next()
  }

  randomId(): string {
    return Array.from({ length: 4 }, () => this.chance.uint32().toString(16).padStart(8, '0')).join('')
  }

  setTimer(callback: () => void, ms: number, background: boolean): Timer {
    const due = this.clocks.mono + Math.max(0, ms)
    const timer: VirtualTimer = { due, rank: this.chance.next(), background, callback }
    this.heap.push(timer)
    this.count(timer, 1)
    return {
      cancel: () => {
        if (timer.callback === undefined) return
        timer.callback = undefined
        this.count(timer, -1)
      },
    }
  }

  defer(callback: () => void): void {
    this.deferred.push(callback)
  }

  /** How many timers are set and neither fired nor cancelled. */
  get timers(): number {
    return this.foreground + this.background
  }

  /** Those of them that would keep a process alive. */
  get foregroundTimers(): number {
    return this.foreground
  }

  /** A promise for `ms` later. Somebody has to let the time pass. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.setTimer(resolve, ms, false))
  }

  /**
   * Moves clocks without running a timer. All three by the same amount is a process that stood still (a blocked event
   * loop, SIGSTOP); `boot` and `wall` alone a machine that slept; `wall` alone somebody who set the clock.
   */
  jump({ mono = 0, boot = 0, wall = 0 }: ClockJump): void {
    this.clocks.mono += mono
    this.clocks.boot += boot
    this.clocks.wall += wall
  }

  /** Time passes for everybody but this process, which finds its timers overdue afterwards. */
  stall(ms: number): void {
    this.jump({ mono: ms, boot: ms, wall: ms })
  }

  /** Lets `ms` pass and runs every timer that becomes due on the way. */
  async advance(ms: number): Promise<void> {
    const end = this.clocks.mono + ms
    await this.settle()
    while (this.fireNext(end)) await this.settle()
    this.stall(Math.max(0, end - this.clocks.mono))
  }

  /** Runs timers until none is left that would keep a process alive. Gives up after `limit` milliseconds. */
  async runUntilIdle(limit: number = DAY): Promise<void> {
    const end = this.clocks.mono + limit
    await this.settle()
    while (this.foreground > 0) {
      if (!this.fireNext(end)) throw new Error(`${this.foreground} timers are still set after ${limit} ms`)
      await this.settle()
    }
  }

  /** Lets as much time pass as the promise needs. Rejects when nothing is left that could settle it. */
  async until<T>(promise: Promise<T>, limit: number = DAY): Promise<T> {
    const end = this.clocks.mono + limit
    let pending = true
    const settled = (): void => void (pending = false)
    promise.then(settled, settled)
    await this.settle()
    while (pending) {
      if (!this.fireNext(end)) throw new Error(`still pending: no timer within ${limit} ms can settle it`)
      await this.settle()
    }
    return promise
  }

  /** Runs everything that waits for no timer: promise callbacks, deferred calls, and what they lead to. */
  async settle(): Promise<void> {
    await promiseCallbacks()
    for (let next = this.deferred.shift(); next !== undefined; next = this.deferred.shift()) {
      next()
      await promiseCallbacks()
    }
  }

  private fireNext(end: number): boolean {
    this.dropCancelled()
    const timer = this.heap.peek()
    if (timer === undefined || timer.due > end) return false
    this.heap.pop()
    this.stall(Math.max(0, timer.due - this.clocks.mono))
    this.count(timer, -1)
    const { callback } = timer
    timer.callback = undefined
    callback?.()
    return true
  }

  private dropCancelled(): void {
    let timer = this.heap.peek()
    while (timer !== undefined && timer.callback === undefined) {
      this.heap.pop()
      timer = this.heap.peek()
    }
  }

  private count({ background }: VirtualTimer, change: 1 | -1): void {
    if (background) this.background += change
    else this.foreground += change
  }
}
