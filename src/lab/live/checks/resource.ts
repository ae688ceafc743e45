import { checkFencedResource, checkHolderAdmitted } from '../../../testkit/checkers/fenced-resource.ts'
import type { Hold } from '../../../testkit/holds.ts'
import type { ViolationRecord } from '../../record.ts'
import type { Decision } from '../../resource/register.ts'
import type { Evidence } from '../evidence.ts'
import { since } from '../timeline.ts'

export type ResourceCheck = 'lost update' | 'fenced resource' | 'lost update, fenced'

/** What the two resources saw. Their own word is the truth, whatever became of the clients. */
export function resourceOf({ registers, began }: Evidence, holds: readonly Hold[]): ViolationRecord[] {
  return registers.flatMap(({ name, unfenced, fenced }) => {
    const asked = fenced.map(({ client, token, accepted, at }) => ({ name, client, token, accepted, at }))
    return [
      ...overwrites('lost update', name, unfenced, began),
      ...[...checkFencedResource(asked), ...checkHolderAdmitted(holds, asked)].map(({ message, at }) => ({
        check: 'fenced resource',
        message,
        ...(at !== undefined && { at: since(began, at) }),
      })),
      ...overwrites('lost update, fenced', name, fenced, began),
    ]
  })
}

/** Writes that were built on something else than what they overwrote: what had been added in between is lost. */
function overwrites(
  check: ResourceCheck,
  name: string,
  log: readonly Decision[],
  began: bigint,
): ViolationRecord[] {
  let current = 0
  let last: Decision | undefined
  return log.flatMap((decision) => {
    if (decision.kind !== 'write' || !decision.accepted) return []
    const { read, wrote, client, at } = decision
    const [over, before] = [current, last]
    current = wrote
    last = decision
    if (read === over) return []
    const message = `"${name}": ${client} had read ${read} and wrote ${wrote} over ${over}: what was added in between is lost`
    const clients = [...new Set([...(before === undefined ? [] : [before.client]), client])]
    return [{ check, message, at: since(began, at), clients }]
  })
}
