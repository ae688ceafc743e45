import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'

/** The clocks that a horizon is written in. Milliseconds. */
export interface Clocks {
  /** The one that the embedded store measures leases by; means nothing to another process. */
  mono(): number
  wall(): number
  /** Since the machine's boot, sleep included. */
  uptime(): number
  /** Which boot that is, or null where it cannot be told. */
  readonly boot: string | null
}

export function systemClocks(): Clocks {
  return {
    mono: () => performance.now(),
    wall: () => Date.now(),
    uptime: () => uptime() * 1000,
    boot: bootId(),
  }
}

function bootId(): string | null {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return null
  }
}
