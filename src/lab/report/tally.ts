import type { RunRecord, Verdict } from '../record.ts'
import { judge } from '../record.ts'

/** One verdict with the run that it is about. */
export interface Finding {
  readonly run: RunRecord
  readonly verdict: Verdict
}

export interface Tally {
  /** Promised, and seen to hold. */
  readonly held: readonly Finding[]
  /** Known not to hold, and seen to break. */
  readonly broke: readonly Finding[]
  /** Could have broken, and did not this time. */
  readonly lucky: readonly Finding[]
  /** Not as the table says. */
  readonly unexpected: readonly Finding[]
  /** Could not be decided: not counted as held. */
  readonly unknown: readonly Finding[]
  readonly notRun: readonly Finding[]
}

export type Pile = keyof Tally

export function pileOf(verdict: Verdict): Pile {
  if (verdict.seen === 'not run') return 'notRun'
  switch (judge(verdict)) {
    case 'undecided':
      return 'unknown'
    case 'unexpected':
      return 'unexpected'
    case 'as expected':
      return verdict.seen === 'broke' ? 'broke' : verdict.expected === 'may break' ? 'lucky' : 'held'
  }
}

export function tally(records: readonly RunRecord[]): Tally {
  const piles: Record<Pile, Finding[]> = {
    held: [],
    broke: [],
    lucky: [],
    unexpected: [],
    unknown: [],
    notRun: [],
  }
  for (const run of records) {
    for (const verdict of run.verdicts) piles[pileOf(verdict)].push({ run, verdict })
  }
  return piles
}

/**
 * 0: everything that was run is as the table says. 1: something is not, or could not be decided, or nothing was run at all. Whoever was
 * interrupted half-way has not seen that everything is as it should be, but what was found was found.
 */
export function exitCode({ held, broke, lucky, unexpected, unknown }: Tally, interrupted?: number): number {
  if (interrupted !== undefined) return unexpected.length > 0 ? 1 : interrupted
  if (held.length + broke.length + lucky.length === 0) return 1
  return unexpected.length + unknown.length === 0 ? 0 : 1
}
