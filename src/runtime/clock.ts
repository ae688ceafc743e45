import type { Env } from './env.ts'

/** Readings differ by this much without meaning anything: the boot clock ticks in hundredths of a second. */
const NOISE_MS = 20
/** In Bun and Deno the boot clock ticks in seconds. */
const COARSE_MS = 1000
/** Going back by more than this is a step, not noise. */
const STEP_BACK_MS = 50
/** How often the boot clock is read when nothing looks suspicious; a reading costs microseconds. */
const BOOT_EVERY_MS = 1000

export interface ClockOptions {
  /** `false` where the wall clock is set by hand so often that false alarms hurt more than a missed suspend. */
  readonly wall?: boolean | undefined
}

/**
 * One time for everything that is leased: it runs with the monotonic clock and jumps ahead whenever boot time or wall
 * time did. A laptop that slept, or a wall clock that was put forward, costs a lease; it never makes one last longer.
 *
 * The boot clock is read only when the wall clock moved against the monotonic one, which a suspend shows too, and
 * once a second besides: reading all three each time would cost more than an acquire in memory.
 */
export class Clock {
  private readonly env: Env
  private readonly useWall: boolean
  /** What the monotonic clock said when this one was last read: waits are counted on that. A reading more costs as much as a queue entry. */
  mono: number
  /** By how much this clock is ahead of the monotonic one. */
  private ahead = 0
  private wallOffset: number
  private bootOffset: number
  private bootReadAt: number
  /** How much boot time may be ahead without meaning anything: more while nothing but whole seconds was read. */
  private bootNoise: number
  private readonly callbacks: (() => void)[] = []

  constructor(env: Env, { wall = true }: ClockOptions = {}) {
    this.env = env
    this.useWall = wall
    const mono = env.mono()
    this.mono = mono
    this.wallOffset = env.wall() - mono
    const boot = env.boot()
    this.bootOffset = boot - mono
    // Without the wall clock nothing else would see a suspend of less than a second.
    this.bootNoise = wall && isCoarse(boot) ? NOISE_MS + COARSE_MS : NOISE_MS
    this.bootReadAt = mono
  }

  /** Milliseconds; only differences mean anything. */
  now(): number {
    const mono = this.env.mono()
    this.mono = mono
    const moved = this.env.wall() - mono - this.wallOffset
    if (
      moved > NOISE_MS ||
      moved < -STEP_BACK_MS ||
      mono - this.bootReadAt > BOOT_EVERY_MS ||
      !this.useWall
    ) {
      this.compare(mono, moved)
    }
    return mono + this.ahead
  }

  /** Calls back when this clock has jumped ahead: timers that were set before come too late from then on. */
  onJump(callback: () => void): void {
    this.callbacks.push(callback)
  }

  private compare(mono: number, wallMoved: number): void {
    const boot = this.env.boot()
    if (!isCoarse(boot)) this.bootNoise = NOISE_MS
    const bootMoved = boot - mono - this.bootOffset
    const jump = Math.max(bootMoved > this.bootNoise ? bootMoved : 0, this.useWall ? wallMoved : 0)
    this.bootReadAt = mono
    if (jump > NOISE_MS) {
      // Both witnesses saw the same jump, so both start afresh.
      this.ahead += jump
      this.wallOffset += wallMoved
      this.bootOffset += bootMoved
      for (const callback of this.callbacks) callback()
    } else if (wallMoved < -STEP_BACK_MS) {
      this.wallOffset += wallMoved
    }
  }
}

const isCoarse = (boot: number): boolean => boot % COARSE_MS === 0
