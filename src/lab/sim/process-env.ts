import type { Env, Timer } from '../../runtime/env.ts'
import type { Random } from '../../testkit/random.ts'
import type { VirtualEnv } from '../../testkit/virtual-env.ts'
import { Clocks } from './clocks.ts'

/** A process's own view of the world. While it is paused, time passes and nothing reaches it. */
export class ProcessEnv implements Env {
  readonly clocks: Clocks
  /** Timers of its own that are set, those that would keep it alive first. */
  readonly timers: { foreground: number; background: number } = { foreground: 0, background: 0 }
  dead = false
  private readonly world: VirtualEnv
  private readonly chance: Random
  private readonly stalls: { reads: number; readonly ms: number }[] = []
  /** Reasons to stand still. */
  private pauses = 0
  private missed: (() => void)[] = []
  private sleepers = 0
  private asleepSince = 0
  private readonly onStall: (ms: number) => void

  constructor(world: VirtualEnv, chance: Random, onStall: (ms: number) => void) {
    this.world = world
    this.chance = chance
    this.onStall = onStall
    this.clocks = new Clocks(() => world.mono())
  }

  mono(): number {
    this.reading()
    return this.clocks.mono()
  }

  boot(): number {
    this.reading()
    return this.clocks.boot()
  }

  wall(): number {
    this.reading()
    return this.clocks.wall()
  }

  random(): number {
    return this.chance.next()
  }

  randomId(): string {
    return Array.from({ length: 4 }, () => this.chance.uint32().toString(16).padStart(8, '0')).join('')
  }

  setTimer(callback: () => void, ms: number, background: boolean): Timer {
    const kind = background ? 'background' : 'foreground'
    let open = true
    this.timers[kind]++
    const close = (): boolean => {
      if (!open) return false
      open = false
      this.timers[kind]--
      return true
    }
    const fire = (): void => this.reach(() => close() && callback())
    const timer = this.world.setTimer(fire, this.clocks.truly(ms), true)
    return { cancel: () => void (close() && timer.cancel()) }
  }

  defer(callback: () => void): void {
    this.world.defer(() => this.reach(callback))
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.setTimer(resolve, ms, false))
  }

  get paused(): boolean {
    return this.pauses > 0
  }

  pause(): void {
    this.pauses++
  }

  resume(): void {
    this.pauses--
    if (this.pauses > 0) return
    const missed = this.missed
    this.missed = []
    for (const callback of missed) this.reach(callback)
  }

  /** The machine sleeps: its monotonic clock stands still too. */
  suspend(): void {
    this.pause()
    this.sleepers++
    if (this.sleepers === 1) this.asleepSince = this.world.mono()
  }

  wake(): void {
    this.sleepers--
    if (this.sleepers === 0) this.clocks.sleep(this.world.mono() - this.asleepSince)
    this.resume()
  }

  /** The process ends: nothing of it ever runs again. */
  kill(): void {
    this.dead = true
    this.missed = []
  }

  /** From now on the `reads`-th look at a clock takes `ms`. */
  stall(reads: number, ms: number): void {
    this.stalls.push({ reads, ms })
  }

  heal(): void {
    this.stalls.length = 0
  }

  /** Whatever comes from outside: a message, a timer. */
  reach(callback: () => void): void {
    if (this.dead) return
    if (this.pauses > 0) this.missed.push(callback)
    else callback()
  }

  private reading(): void {
    const stall = this.stalls[0]
    if (stall === undefined || this.pauses > 0 || this.dead) return
    stall.reads--
    if (stall.reads > 0) return
    this.stalls.shift()
    this.onStall(stall.ms)
  }
}
