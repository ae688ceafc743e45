import type { Instant } from '../../core/claim-queue.ts'

/** True time: what no process can see. Milliseconds since the run began. */
export type TrueTime = () => number

const WALL_START = Date.UTC(2030, 0, 1)
const BOOT_START = 1_000_000

/** The clocks of one machine: a process's or a node's. */
export class Clocks {
  rate = 1
  private readonly now: TrueTime
  /** How long the monotonic clock stood still. */
  private slept = 0
  private wallShift = 0

  constructor(now: TrueTime) {
    this.now = now
  }

  mono(): number {
    return (this.now() - this.slept) * this.rate
  }

  boot(): number {
    return BOOT_START + this.now() * this.rate
  }

  wall(): number {
    return WALL_START + this.now() * this.rate + this.wallShift
  }

  setWall(by: number): void {
    this.wallShift += by
  }

  sleep(ms: number): void {
    this.slept += ms
  }

  /** Milliseconds of true time that so many on this clock take. */
  truly(ms: number): number {
    return ms / this.rate
  }

  /** Leases by the monotonic clock, tokens by the wall clock. */
  steady(): Instant {
    return { ms: this.mono(), micros: Math.floor(this.wall() * 1000) }
  }
}
