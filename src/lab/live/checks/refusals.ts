import type { ViolationRecord } from '../../record.ts'
import type { Evidence } from '../evidence.ts'
import { since } from '../timeline.ts'
import type { Window } from '../windows.ts'
import { expiryOf, troubled } from '../windows.ts'
import { presencesOf } from './presence.ts'

/**
 * A try is refused only where somebody is in its way: what is asked for does not fit beside what may be there, or somebody
 * had asked before and was not told yet.
 */
export function refusalsOf(evidence: Evidence, windows: readonly Window[]): ViolationRecord[] {
  const { refusals = [], began, settings } = evidence
  const all = presencesOf(evidence)
  return refusals.flatMap(({ client, name, weight, capacity, from, at }) => {
    const [asked, told] = [since(began, from), since(began, at)]
    // What a fault left at the store is gone when it has run out.
    if (troubled(windows, asked - expiryOf(settings), told)) return []
    const there = all.filter((one) => one.name === name && one.from <= told && one.to >= asked)
    // A client makes one call at a time: the last that it began is this one.
    const own = there.findLast((one) => one.client === client && one.from <= asked)
    const others = there.filter((one) => one !== own)
    const taken = others.reduce((sum, one) => sum + one.weight, 0)
    const asking = others.some(({ granted = Infinity }) => granted > asked)
    if (asking || taken + weight > capacity) return []
    const message = `${client} was refused "${name}" although nobody was in its way`
    return [{ check: 'refusals', message, at: told, clients: [client] }]
  })
}
