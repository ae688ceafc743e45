import type { Hold } from '../../../testkit/holds.ts'
import type { FaultRecord, ViolationRecord } from '../../record.ts'
import type { Evidence } from '../evidence.ts'
import { since } from '../timeline.ts'
import type { Window } from '../windows.ts'
import { stalledIn, WAKE_UP_MS, waitsOf } from './progress.ts'

/** Done to a client that has a lock: nobody else is hindered by it. */
const OF_HOLDERS: ReadonlySet<string> = new Set(['kill', 'pause', 'block'])

/** What a client held that was killed is somebody else's when its lease has ended, and not much later. */
export function overdueOf(
  evidence: Evidence,
  holds: readonly Hold[],
  windows: readonly Window[],
): ViolationRecord[] {
  const { faults, history, began, settings } = evidence
  const { wakeups, earlyExpiry } = settings.capabilities
  const most = settings.lateExpiry + earlyExpiry + WAKE_UP_MS[wakeups]
  const hindering = windows.filter(({ kind }) => !OF_HOLDERS.has(kind))
  const waits = waitsOf(history)
  const overdue = ({ target, at }: FaultRecord, dead: Hold): ViolationRecord[] => {
    const { name, weight, capacity } = dead
    const end = since(began, dead.to)
    const next = holds.find(
      (one) =>
        one.name === name && one.weight + weight > capacity && one.process !== target && one.from > dead.from,
    )
    if (next === undefined) return []
    const given = since(began, next.from)
    const wanted = waits.some(
      ([asked, to, call]) =>
        call.name === name &&
        call.process !== target &&
        since(began, asked) <= end &&
        (to === undefined || since(began, to) >= given),
    )
    const took = given - end - stalledIn(evidence, { from: end, to: given })
    const hindered = hindering.some(({ from, trouble }) => from <= given && trouble >= at)
    if (!wanted || hindered || took <= most) return []
    const message = `"${name}" was given to nobody for ${Math.round(took)} ms after the lease of ${target}, which was killed, had ended`
    return [{ check: 'liveness', message, at: end, clients: [target] }]
  }
  return faults
    .filter(({ kind, absent }) => kind === 'kill' && absent !== true)
    .flatMap((fault) =>
      holds
        .filter(({ process, to }) => process === fault.target && since(began, to) > fault.at)
        .flatMap((dead) => overdue(fault, dead)),
    )
}
