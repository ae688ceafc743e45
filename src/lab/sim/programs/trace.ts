import type { NameInfo } from '../../../core/contract.ts'
import type { ClosePlan, LockRef, Mode, Section } from './program.ts'

/** What happened while a program ran, in true time, for the checks. */

export type CallEnd = 'granted' | 'refused' | 'failed'

/** One name that a call asks for. */
export interface Wanted {
  readonly name: string
  readonly mode: Mode
  readonly weight: number
  readonly capacity: number
  /** It lasts until it is given back. */
  readonly renewed: boolean
  /** Where the caller holds it already: shared with that lease, or an error. */
  readonly nesting: 'none' | 'shares' | 'refused'
  readonly inside: Grant | undefined
}

/** One acquire. */
export interface Call {
  readonly process: number
  readonly task: number
  readonly how: Section['how']
  readonly wants: readonly Wanted[]
  /** Through `all`, which asks for one after the other, and a moment after the call. */
  readonly set: boolean
  /** Undefined: a try, or `wait: 0`. */
  readonly wait: number | undefined
  readonly maxHold: number | undefined
  /** Of this call alone. */
  readonly ttl: number | undefined
  readonly from: number
  abortedAt: number | undefined
  /** Undefined: it has not settled. */
  to: number | undefined
  end: CallEnd | undefined
  /** What it rejected with: a code, or the message of something unexpected. */
  error: string | undefined
}

/** One lease, from its grant until its owner gave it back or its signal aborted. */
export interface Grant {
  readonly call: Call
  readonly process: number
  readonly name: string
  readonly mode: Mode
  readonly weight: number
  readonly capacity: number
  readonly token: bigint
  readonly from: number
  /** The lease that it is nested in. */
  readonly inside: Grant | undefined
  /** Until then its owner worked. */
  to: number | undefined
  /** Of a writer: from when on it only read. */
  readsFrom: number | undefined
  lost: boolean
}

export interface Closed {
  readonly process: number
  options: ClosePlan['options']
  readonly from: number
  to: number | undefined
  /** Names that it said are left at the store. */
  left: readonly string[] | undefined
}

export interface Finding {
  readonly check: ProgramCheck
  readonly message: string
}

export type ProgramCheck =
  | 'exclusivity'
  | 'tokens'
  | 'progress'
  | 'refusal'
  | 'readers'
  | 'bypass'
  | 'nesting'
  | 'close'
  | 'errors'
  | 'signal'
  | 'set'
  | 'settles'
  | 'leftovers'
  | 'noise'

export class Trace {
  readonly calls: Call[] = []
  readonly grants: Grant[] = []
  readonly closes: Closed[] = []
  /** Names that were taken from their holders. Who holds them is nobody's promise any more. */
  readonly forced: { readonly name: string; readonly from: number; to: number }[] = []
  /** What was seen to be wrong while it ran. */
  readonly findings: Finding[] = []
  /** What each process asked the store, and whether it had an answer. */
  readonly requests: { readonly process: number; from: number; to: number; lost: boolean }[] = []
  /** Leases that nobody gives back. */
  leaks = 0
  remains: readonly NameInfo[] = []
  endedAt = 0
  private readonly stripes = new Map<string, string>()

  /** A key has one stripe, whoever asks and however often: two of them would be two locks. */
  onStripe({ name, key }: LockRef, stripe: string): void {
    if (key === undefined) return
    const which = `${name}/${key}`
    const before = this.stripes.get(which) ?? stripe
    this.stripes.set(which, stripe)
    if (before !== stripe)
      this.found('exclusivity', `the key "${key}" of "${name}" is on "${stripe}", and was on "${before}"`)
  }

  found(check: ProgramCheck, message: string): void {
    this.findings.push({ check, message })
  }

  wasForced(name: string): boolean {
    return this.forced.some((each) => each.name === name)
  }

  closeOf(process: number): Closed | undefined {
    return this.closes.find((each) => each.process === process)
  }
}
