import type { ServerHandle } from '../live/servers.ts'
import type { Play } from './play.ts'

/** What a play may use. What is missing on this machine is absent, and the specimens that need it are not run. */
export interface Servers {
  readonly redis?: ServerHandle
  /** Starts a primary and a replica whose link can be broken. */
  readonly redisPair?: () => Promise<RedisPair>
  readonly zookeeper?: ServerHandle
  readonly mysql?: ServerHandle
}

export interface RedisPair {
  readonly primary: ServerHandle
  readonly replica: ServerHandle
  /** From now on the replica hears nothing of what the primary does. */
  isolate(): void
  /** The primary dies, and the replica takes its place. */
  failover(): Promise<void>
  stop(): Promise<void>
}

/** A check by which a specimen is caught, as the verdicts name it. */
export type CaughtBy = 'exclusivity' | 'liveness' | 'polling' | 'herd'

/** A design that is often shown on the way to the right one, and the scenario in which its flaw is seen. */
export interface Specimen {
  readonly id: string
  readonly title: string
  readonly flaw: string
  readonly needs: keyof Servers
  /** What is done to it. */
  readonly fault: string
  /** Absent: the design holds in this scenario. */
  readonly caughtBy?: CaughtBy
  flawed(play: Play): Promise<void>
  /** The same scenario on holdfast. Absent: another specimen's shows it. */
  readonly ours?: {
    /** Also what holdfast cannot keep from happening, as its table says. */
    readonly breaks?: readonly string[]
    run(play: Play): Promise<void>
  }
}
