import type { Violation } from './violation.ts'

/** A lease whose signal aborted. Milliseconds on one clock. */
export interface Loss {
  readonly process: string
  readonly name: string
  readonly token: bigint
  /** Until when its client had believed in it. */
  readonly validUntil: number
  readonly abortedAt: number
  /** It had not aborted then: its owner gave the lease back without having been told. */
  readonly silent?: true
}

/** A time in which a process stood still, and could not have aborted anything. */
export interface Standstill {
  readonly process: string
  readonly from: number
  readonly to: number
}

export interface AbortLatencyOptions {
  readonly standstills?: readonly Standstill[] | undefined
  /** How late a timer may be. */
  readonly tolerance?: number | undefined
}

/** The signal of a lease that runs out aborts no later than the belief in it ends, or as soon as its process can. */
export function checkAbortLatency(
  losses: readonly Loss[],
  { standstills = [], tolerance = 5 }: AbortLatencyOptions = {},
): Violation[] {
  const sorted = [...standstills].sort((a, b) => a.from - b.from)
  return losses.flatMap(({ process, name, token, validUntil, abortedAt, silent }) => {
    if (abortedAt - validUntil <= tolerance) return []
    // A standstill excuses what would have happened in it, not what was late before it began, nor before the next one after it.
    const excuses = sorted.filter((each) => each.process === process)
    const { due } = excuses.reduce(
      (at, { from, to }) =>
        from <= at.due + at.spare && to > at.due
          ? { due: to, spare: at.spare - Math.max(0, from - at.due) }
          : at,
      { due: validUntil, spare: tolerance },
    )
    const late = abortedAt - due
    if (late <= tolerance) return []
    const message = `the signal of ${process}'s lease on "${name}" (token ${token}) ${silent === true ? 'had not aborted' : 'aborted'} ${Math.round(late)} ms after its end`
    return [{ rule: 'abort-latency' as const, message }]
  })
}
