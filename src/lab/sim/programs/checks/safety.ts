import { checkExclusivity } from '../../../../testkit/checkers/exclusivity.ts'
import { checkTokenOrder } from '../../../../testkit/checkers/token-order.ts'
import type { Violation } from '../../../../testkit/checkers/violation.ts'
import { nanoseconds } from '../../../../testkit/history.ts'
import type { Hold } from '../../../../testkit/holds.ts'
import { familiesOf } from '../context.ts'
import type { Finding, Grant, ProgramCheck, Trace } from '../trace.ts'

/** At no time do owners work with more of a name than there is. */
export function exclusivity(trace: Trace): readonly Finding[] {
  return found('exclusivity', checkExclusivity(holdsOf(trace)))
}

/** Tokens are unique, and grow with every grant that excludes the one before. */
export function tokens(trace: Trace): readonly Finding[] {
  return found('tokens', checkTokenOrder(holdsOf(trace)))
}

/** A lease and those nested in it are one hold, until the last of them is given back. */
function holdsOf(trace: Trace): readonly Hold[] {
  const { endedAt } = trace
  const end = (grant: Grant): number => grant.to ?? endedAt
  const grants = trace.grants.filter(({ name }) => !trace.wasForced(name))
  return [...familiesOf(grants)].map(([root, family], op) => {
    const to = Math.max(...family.map(end))
    const writing = Math.max(
      ...family.filter(({ mode }) => mode === root.mode).map((grant) => grant.readsFrom ?? end(grant)),
    )
    return {
      process: `p${root.process}`,
      op,
      name: root.name,
      weight: root.weight,
      capacity: root.capacity,
      token: root.token,
      laterTokens: [],
      invoked: nanoseconds(root.call.from),
      queued: undefined,
      from: nanoseconds(root.from),
      ...(root.mode === 'write' && writing < to ? { readsFrom: nanoseconds(writing) } : {}),
      to: nanoseconds(to),
    }
  })
}

function found(check: ProgramCheck, violations: readonly Violation[]): readonly Finding[] {
  return violations.map(({ message }) => ({ check, message }))
}
