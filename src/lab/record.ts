import type { Evidence } from './live/evidence.ts'

/**
 * What a run of the lab leaves behind, whether it was simulated or on real servers: one shape for the checkers'
 * verdicts, the summary on the terminal, the JSON and the pictures.
 */

/** Milliseconds since the run began. */
export type At = number

/** Something that was done to the world on purpose. */
export interface FaultRecord {
  readonly at: At
  /** When it was taken back. Absent: it was over at once, or lasted to the end. */
  readonly until?: At
  /** The nemesis: `pause`, `kill`, `cut`, `partition`, `clock-jump` … */
  readonly kind: string
  /** What it was done to: a client, a server, a connection. */
  readonly target: string
  readonly detail?: string
  /** How long it had to last to be what it says. */
  readonly least?: number
  /** It was tried, and did not come about. */
  readonly absent?: true
}

/** One thing that happened to a client, for the timeline. */
export interface TimelineEvent {
  readonly at: At
  readonly client: string
  /** The name of the lock. */
  readonly name: string
  readonly kind:
    | 'waiting'
    | 'acquired'
    | 'renewed'
    | 'downgraded'
    | 'at-risk'
    | 'lost'
    | 'releasing'
    | 'released'
    | 'failed'
    | 'write'
    | 'write-refused'
  readonly token?: string
  /** Until when the client may believe, with `acquired` and `renewed`. */
  readonly validUntil?: At
  readonly detail?: string
}

export interface ViolationRecord {
  readonly check: string
  readonly message: string
  /** Where to look, if the checker can say. */
  readonly at?: At
  readonly clients?: readonly string[]
}

/** `unknown`: the check could not decide (a capped search). Never counted as held. */
export type Outcome = 'held' | 'broke' | 'unknown' | 'not run'

/** One check of one run, against what the table of guarantees says. */
export interface Verdict {
  readonly check: string
  /** `not asked`: somebody else's library, of which only what is seen is told. */
  readonly expected: 'holds' | 'breaks' | 'may break' | 'not asked'
  readonly seen: Outcome
  /** Why it was not run or is unknown, or the first violation in words. */
  readonly why?: string
}

/** How much there was to look at. */
export interface Counts {
  readonly grants: number
  /** Clients that were started in the place of one that was killed. */
  readonly respawns: number
  readonly ttl: number
  /** How to make the same run again. */
  readonly command?: string
}

export interface RunRecord {
  /** Unique in a report; stable from run to run. */
  readonly id: string
  readonly title: string
  /** More of what was run, for whoever looks at the details. */
  readonly about?: string
  /** `redis`, `quorum`, `specimen: SETNX without expiry` … */
  readonly store: string
  readonly fault: string
  readonly seed?: number
  readonly durationMs: number
  readonly clients: readonly string[]
  readonly faults: readonly FaultRecord[]
  readonly timeline: readonly TimelineEvent[]
  readonly violations: readonly ViolationRecord[]
  readonly verdicts: readonly Verdict[]
  readonly counts?: Counts
  /** Everything that the verdicts follow from; of runs on real servers. */
  readonly evidence?: Evidence
}

export type Surprise = 'as expected' | 'unexpected' | 'undecided'

/** Whether a verdict is what the table promised. `may break` and `not asked` are satisfied by both. */
export function judge({ expected, seen }: Verdict): Surprise {
  if (seen === 'unknown' || seen === 'not run') return 'undecided'
  if (expected === 'may break' || expected === 'not asked') return 'as expected'
  return (expected === 'holds') === (seen === 'held') ? 'as expected' : 'unexpected'
}
