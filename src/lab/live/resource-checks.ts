import { checkFencedResource } from '../../testkit/checkers/fenced-resource.ts'
import { checkLostUpdates } from '../../testkit/checkers/lost-update.ts'
import type { Update } from '../../testkit/checkers/lost-update.ts'
import type { ViolationRecord } from '../record.ts'
import type { RegisterLog } from '../resource/protocol.ts'
import type { Decision } from '../resource/register.ts'
import { since } from './timeline.ts'

/** What a register was asked to store, and stored. Its own word is the truth, whatever became of the client. */
export function updatesOf(log: readonly Decision[]): Update[] {
  return log
    .filter(({ kind, accepted }) => kind === 'write' && accepted)
    .map(({ read, wrote }) => ({ read, wrote, outcome: 'stored' }))
}

export type ResourceCheck = 'lost update' | 'fenced resource' | 'lost update, fenced'

/** What the two resources saw, and where to look. */
export function resourceViolations(
  logs: readonly RegisterLog[],
  began: bigint,
): (ViolationRecord & { readonly check: ResourceCheck })[] {
  return logs.flatMap(({ name, unfenced, fenced, final }) => {
    const decided = fenced.map(({ token, accepted }) => ({ name, token, accepted }))
    return [
      ...checkLostUpdates(updatesOf(unfenced), final.unfenced).map(({ message }) => ({
        check: 'lost update' as const,
        message: `"${name}": ${message}`,
        ...placeOf(unfenced, began),
      })),
      ...checkFencedResource(decided).map(({ message }) => ({ check: 'fenced resource' as const, message })),
      ...checkLostUpdates(updatesOf(fenced), final.fenced).map(({ message }) => ({
        check: 'lost update, fenced' as const,
        message: `"${name}": ${message}`,
        ...placeOf(fenced, began),
      })),
    ]
  })
}

/** The first write that was built on what somebody else had built on before, and whose it was. */
function placeOf(log: readonly Decision[], began: bigint): Pick<ViolationRecord, 'at' | 'clients'> {
  const first = new Map<number, Decision>()
  for (const decision of log) {
    if (decision.kind !== 'write' || !decision.accepted) continue
    const other = first.get(decision.read)
    if (other !== undefined) {
      return { at: since(began, decision.at), clients: [...new Set([other.client, decision.client])] }
    }
    first.set(decision.read, decision)
  }
  return {}
}
