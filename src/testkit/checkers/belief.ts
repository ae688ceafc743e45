import type { HistoryEvent } from '../history.ts'
import type { Violation } from './violation.ts'

/** A lease that is being given back, or that told of its loss, does not say that it is held. */
export function checkBelief(events: readonly HistoryEvent[]): Violation[] {
  const ended = new Map<string, string>()
  const told = new Set<string>()
  return events.flatMap(({ process, op, name, kind, phase, token }) => {
    const key = `${process}\n${op}`
    if (kind === 'release' && phase === 'invoke') ended.set(key, 'its release was called')
    if (kind === 'lost') ended.set(key, 'it had told of its loss')
    const since = ended.get(key)
    if (kind !== 'check' || since === undefined || told.has(key)) return []
    told.add(key)
    const message = `${process}'s lease on "${name}" (token ${token}) said that it is held after ${since}`
    return [{ rule: 'belief' as const, message }]
  })
}
