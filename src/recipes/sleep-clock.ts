import type { Env } from '../runtime/env.ts'

/** The boot clocks of some runtimes tick in seconds. */
const BOOT_TICK_MS = 1000

/**
 * The monotonic clock, and what the machine slept besides: stores and servers count on meanwhile. Never ahead of the truth, for what is counted
 * with it must not end early: not by the wall clock, which somebody may put forward, and less a tick of the boot clock.
 */
export class SleepClock {
  private readonly env: Env
  private readonly awake: number
  private slept = 0
  /** How far the wall clock was ahead when the boot clock was last read. */
  private lead: number

  constructor(env: Env) {
    this.env = env
    const mono = env.mono()
    this.awake = env.boot() - mono
    this.lead = env.wall() - mono
  }

  now(): number {
    const { env } = this
    const mono = env.mono()
    const lead = env.wall() - mono
    // To read the boot clock costs more than all else that a hit in a Map does. A machine that slept shows in the wall clock too.
    if (Math.abs(lead - this.lead) >= BOOT_TICK_MS) {
      this.lead = lead
      this.slept = Math.max(this.slept, env.boot() - mono - this.awake - BOOT_TICK_MS)
    }
    return mono + this.slept
  }
}
