import type { Clocks } from '../../src/server/embedded/clocks.ts'

/** Clocks that stand still until they are moved. */
export class Hands implements Clocks {
  boot: string | null = 'boot-1'
  now = 1000
  wallNow = 1_700_000_000_000
  upNow = 50_000
  mono = (): number => this.now
  wall = (): number => this.wallNow
  uptime = (): number => this.upNow

  pass(ms: number): void {
    this.now += ms
    this.wallNow += ms
    this.upNow += ms
  }

  /** Another process: its monotonic clock begins anew. */
  restart(downtime: number): void {
    this.pass(downtime)
    this.now = 17
  }

  reboot(downtime: number): void {
    this.restart(downtime)
    this.boot = `${this.boot}'`
    this.upNow = 10
  }
}
