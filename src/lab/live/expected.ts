import type { Capabilities } from '../../core/contract.ts'
import type { Verdict } from '../record.ts'
import type { NemesisFacts } from './nemesis.ts'

export type Expected = Verdict['expected']

/** What the store's own table says about a check under one fault. */
export function expectedOf(
  check: string,
  nemesis: NemesisFacts,
  { guarantees, fencing }: Capabilities,
): Expected {
  const { row, aimedAt } = nemesis
  const guarantee = row === undefined ? 'holds' : guarantees[row]
  if (guarantee === 'holds') return 'holds'
  switch (check) {
    case 'exclusivity':
    case 'linearizability':
      // Who stands still does not believe anything: when it wakes up, its clock tells it the truth.
      if (row === 'holderPause') return 'holds'
      return aimedAt === 'exclusivity' && check === 'exclusivity' ? 'breaks' : 'may break'
    case 'lost update':
      return aimedAt === 'lost update' ? 'breaks' : 'may break'
    case 'token order':
    case 'fenced resource':
    case 'lost update, fenced':
      return row === 'holderPause' || (guarantee === 'fenced' && fencing === 'monotonic')
        ? 'holds'
        : 'may break'
    default:
      return 'holds'
  }
}

/** Of several faults in one run: what any of them may break, may break. */
export function expectedOfAll(
  check: string,
  nemeses: readonly NemesisFacts[],
  capabilities: Capabilities,
): Expected {
  const all = new Set(nemeses.map((one) => expectedOf(check, one, capabilities)))
  if (all.size <= 1) return [...all][0] ?? 'holds'
  return 'may break'
}
