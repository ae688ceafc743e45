import { byName } from '../../../testkit/checkers/violation.ts'
import type { Hold } from '../../../testkit/holds.ts'
import type { FaultRecord, ViolationRecord } from '../../record.ts'
import type { Evidence } from '../evidence.ts'
import { firstWhere, Times } from '../in-order.ts'
import { since } from '../timeline.ts'
import type { Window } from '../windows.ts'
import { stalledIn, waitsOf, wakeUpWithin } from './progress.ts'

/** Done to a client that has a lock: nobody else is hindered by it. */
const OF_HOLDERS: ReadonlySet<string> = new Set(['kill', 'pause', 'block'])

/** What a client held that was killed is somebody else's when its lease has ended, and not much later. */
export function overdueOf(
  evidence: Evidence,
  holds: readonly Hold[],
  windows: readonly Window[],
): ViolationRecord[] {
  const { faults, history, began, settings } = evidence
  const { earlyExpiry } = settings.capabilities
  const most = settings.lateExpiry + earlyExpiry + wakeUpWithin(evidence)
  const hindering = windows.filter(({ kind }) => !OF_HOLDERS.has(kind))
  const stalls = new Times(evidence.stalls)
  const byNames = byName(holds)
  const waits = new Map(
    [
      ...byName(
        waitsOf(history).map(([from, to, { name, process }]) => ({
          name,
          process,
          from: since(began, from),
          to: to === undefined ? Infinity : since(began, to),
        })),
      ),
    ].map(([name, own]) => [name, new Times(own)]),
  )
  const overdue = ({ target, at }: FaultRecord, dead: Hold): ViolationRecord[] => {
    const { name, weight, capacity } = dead
    const end = since(began, dead.to)
    const own = byNames.get(name) ?? []
    const next = own
      .slice(firstWhere(own, (one) => one.from > dead.from))
      .find((one) => one.weight + weight > capacity && one.process !== target)
    if (next === undefined) return []
    const given = since(began, next.from)
    const wanted = waits
      .get(name)
      ?.meeting(given, given)
      .some(({ process, from }) => process !== target && from <= end)
    const took = given - end - stalledIn(stalls, { from: end, to: given })
    const hindered = hindering.some(({ from, trouble }) => from <= given && trouble >= at)
    if (wanted !== true || hindered || took <= most) return []
    const message = `"${name}" was given to nobody for ${Math.round(took)} ms after the lease of ${target}, which was killed, had ended`
    return [{ check: 'liveness', message, at: end, clients: [target] }]
  }
  const kills = faults.filter(({ kind, absent }) => kind === 'kill' && absent !== true)
  const heldBy = new Map<string, Hold[]>(kills.map(({ target }) => [target, []]))
  for (const hold of holds) heldBy.get(hold.process)?.push(hold)
  return kills.flatMap((fault) =>
    (heldBy.get(fault.target) ?? [])
      .filter(({ to }) => since(began, to) > fault.at)
      .flatMap((dead) => overdue(fault, dead)),
  )
}
