import { gaveUpOf } from '../../../testkit/checkers/fifo.ts'
import { byName } from '../../../testkit/checkers/violation.ts'
import type { Violation } from '../../../testkit/checkers/violation.ts'
import type { HistoryEvent } from '../../../testkit/history.ts'
import type { Hold } from '../../../testkit/holds.ts'
import type { Evidence, Look } from '../evidence.ts'

/** Somebody who was seen in line, until it was given the lock or gave up. */
interface Waiter {
  readonly process: string
  readonly op: number
  readonly name: string
  readonly weight: number
  readonly queued: bigint
  readonly until: bigint
  /** Absent: it gave up. */
  readonly token?: bigint
}

/**
 * Who stood in line first was first. Where one excludes the other, their tokens tell which of them was. Of several that one
 * release let in together they do not: each is given new ones when it confirms what it was told. Of these only that counts
 * which the store showed: somebody in line, when a later one already had the lock. Where waiters have to ask, the first to ask is
 * let in beside others that have not yet, and nothing can be said of that.
 */
export function orderOf({ history, looks, settings }: Evidence, holds: readonly Hold[]): Violation[] {
  const { wakeups } = settings.capabilities
  const [byHolds, byLooks] = [byName(holds), byName(wakeups === 'push' ? looks : [])]
  return waitersOf(history, holds).flatMap((waiter) => {
    const { process, op, name, queued, until, token } = waiter
    const seen = lastSeen(waiter, byLooks.get(name) ?? [])
    const before = (byHolds.get(name) ?? []).filter(
      (later) => later.invoked > queued && (later.from < seen || wentBefore(later, waiter)),
    )
    if (before.length === 0) return []
    const end = token === undefined ? ', which gave up' : ` (token ${token})`
    const message = `${before.length} that came later went before ${process}#${op} of "${name}"${end}`
    return [{ rule: 'fifo', message, at: until }]
  })
}

function waitersOf(history: readonly HistoryEvent[], holds: readonly Hold[]): Waiter[] {
  const weights = new Map(
    history.flatMap(({ process, op, kind, phase, weight = 1 }) =>
      kind === 'acquire' && phase === 'invoke' ? [[`${process}\n${op}`, weight]] : [],
    ),
  )
  return [
    ...holds.flatMap(({ process, op, name, weight, queued, from: until, token }) =>
      queued === undefined ? [] : [{ process, op, name, weight, queued, until, token }],
    ),
    ...gaveUpOf(history).map((one) => ({ ...one, weight: weights.get(`${one.process}\n${one.op}`) ?? 1 })),
  ]
}

/** When the store was last asked and showed it in line. */
function lastSeen({ process, queued, until }: Waiter, looks: readonly Look[]): bigint {
  return looks.reduce(
    (last, { from, to, waiters }) => (from > last && to <= until && waiters.includes(process) ? from : last),
    queued,
  )
}

/** Of two that exclude each other. */
function wentBefore(later: Hold, { weight, token, until }: Waiter): boolean {
  if (later.weight + weight <= later.capacity) return false
  return token === undefined ? later.from < until : later.token < token
}
