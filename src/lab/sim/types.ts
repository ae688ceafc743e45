import type { Outcome, RunRecord, Verdict } from '../record.ts'
import type { Fault, FaultKind } from './fault.ts'

/** What stands at the other end of the simulated network. */
export type StoreKind = 'claim-queue' | 'redis' | 'session' | 'cas' | 'quorum'

/** The checks of every run, by the names that verdicts and violations use. */
export type Check =
  | 'exclusivity'
  | 'token order'
  | 'fenced resource'
  | 'lost update'
  | 'unfenced resource'
  | 'linearizability'
  | 'liveness'
  | 'bypass'
  | 'leftovers'
  | 'noise'
  | 'abort latency'
  | 'messages'
  | 'calls'

export type Expected = Verdict['expected']

/** One way to hurt one store, and what the table of guarantees says of it. */
export interface Scenario {
  /** `redis/failover`. */
  readonly id: string
  readonly title: string
  readonly store: StoreKind
  /** Settings of the simulated store: its durability, how many nodes … */
  readonly settings: Readonly<Record<string, string | number | boolean>>
  /** Milliseconds. */
  readonly ttl: number
  readonly patience: number
  /** What a seed's list of faults is made of. Empty: a calm world, in which waits are measured. */
  readonly faults: readonly FaultKind[]
  /** Those of them that change nothing in this world, which is what the store promises. */
  readonly harmless: readonly FaultKind[]
  readonly expected: Readonly<Record<Check, Expected>>
  /** Checks that at least one seed among many must be seen to break: the table says that they cannot hold. */
  readonly mustBreak: readonly Check[]
}

export interface SimulateOptions {
  /** An id of `scenarios`, or a scenario of one's own. */
  readonly scenario: string | Scenario
  readonly seed: number
  /** Instead of the faults that the seed makes, for shrinking and replaying. */
  readonly faults?: readonly Fault[]
}

export interface Simulated extends RunRecord {
  readonly seed: number
  /** Of the event log: two runs of one seed have the same. */
  readonly hash: string
  /** Everything that happened, one line a step. */
  readonly log: readonly string[]
  /** The faults as data; `simulate({ …, faults })` repeats exactly this run. */
  readonly plan: readonly Fault[]
}

/** A run as one asks for it again: by its seed and the faults that matter. */
export interface Replay {
  readonly scenario: string | Scenario
  readonly seed: number
  readonly faults: readonly Fault[]
}

export interface Shrunk extends Replay {
  /** The check that breaks, and how often it was run to find out. */
  readonly check: string
  readonly runs: number
  readonly run: Simulated
}

export interface SurveyProgress {
  readonly done: number
  readonly of: number
  readonly scenario: string
  readonly unexpected: number
}

export interface SurveyOptions {
  /** How many runs in all, spread over the scenarios. */
  readonly seeds: number
  readonly firstSeed?: number
  /** Seeds of each scenario that come before those, and are always the same. */
  readonly fixed?: readonly number[]
  readonly scenarios?: readonly Scenario[]
  readonly onProgress?: (progress: SurveyProgress) => void
}

/** What many seeds of one scenario showed. */
export interface SurveyRow {
  readonly scenario: Scenario
  readonly runs: number
  /** How many of them were unlike all others: two that have the same event log show the same. */
  readonly distinct: number
  readonly seen: Readonly<Record<Check, Readonly<Record<Outcome, number>>>>
  /** One verdict per check over all seeds: `breaks` is expected where at least one must. */
  readonly verdicts: readonly Verdict[]
  /** A run for the report: the first surprise, else the first that broke as expected, else the first. */
  readonly example: Simulated
  /** Each run that broke what should hold. */
  readonly unexpected: readonly Simulated[]
}
