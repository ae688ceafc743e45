import { checkExclusivity } from '../../../testkit/checkers/exclusivity.ts'
import { checkLinearizability } from '../../../testkit/checkers/linearizability.ts'
import { fencedMutex, ownedMutex, readWriteLock, semaphore } from '../../../testkit/checkers/models.ts'
import type { Model } from '../../../testkit/checkers/models.ts'
import { operationsOf } from '../../../testkit/checkers/operation.ts'
import type { Operation } from '../../../testkit/checkers/operation.ts'
import { checkTokenOrder } from '../../../testkit/checkers/token-order.ts'
import type { Violation } from '../../../testkit/checkers/violation.ts'
import type { Hold } from '../../../testkit/holds.ts'
import type { ViolationRecord } from '../../record.ts'
import type { Evidence, LabName } from '../evidence.ts'
import { overlapsOf } from '../overlaps.ts'
import { since } from '../timeline.ts'
import { orderOf } from './order.ts'

export interface Safety {
  readonly violations: readonly ViolationRecord[]
  /** Who went before whom: a waiter that is given no processor is taken for one that has left. */
  readonly order: readonly ViolationRecord[]
  /** Checks that could not decide, and why. */
  readonly undecided: ReadonlyMap<string, string>
}

export const MODELS: Readonly<Record<LabName['kind'], Model<unknown>>> = {
  mutex: fencedMutex as Model<unknown>,
  'read-write': readWriteLock as Model<unknown>,
  semaphore: semaphore as Model<unknown>,
}

/** Who held what, with which token, in which order. */
export function safetyOf(evidence: Evidence, holds: readonly Hold[]): Safety {
  const { began } = evidence
  const placed = (check: string, violations: readonly Violation[]): ViolationRecord[] =>
    violations.map(({ message, at }) => ({
      check,
      message,
      ...(at !== undefined && { at: since(began, at) }),
    }))
  const order = linearizabilityOf(evidence)
  const undecided = new Map(order.undecided)
  if (!holds.some(({ queued }) => queued !== undefined)) undecided.set('fifo', 'nobody was seen in line')
  const violations = [
    ...exclusivityOf(holds, began),
    ...placed('token order', checkTokenOrder(holds)),
    ...placed('linearizability', order.violations),
  ]
  return { violations, order: placed('fifo', orderOf(evidence, holds)), undecided }
}

function exclusivityOf(holds: readonly Hold[], began: bigint): ViolationRecord[] {
  const found = checkExclusivity(holds)
  if (found.length === 0) return []
  const overlaps = overlapsOf(holds).map(({ name, clients, tokens, from, to }) => ({
    check: 'exclusivity',
    message: `${clients.join(' and ')} both believe that they hold "${name}" for ${Math.round(Number(to - from) / 1e6)} ms (tokens ${tokens.join(' and ')})`,
    at: since(began, from),
    clients,
  }))
  // More than two may be too many for a semaphore of which any two are not.
  const pairs = new Set(overlaps.map(({ at }) => at))
  const crowds = found.flatMap(({ message, at }) => {
    const when = at === undefined ? undefined : since(began, at)
    return when === undefined || pairs.has(when) ? [] : [{ check: 'exclusivity', message, at: when }]
  })
  return [...overlaps, ...crowds].sort((a, b) => a.at - b.at)
}

/** Calls that a search for their order needs, for each name and its model. */
export function callsOf({
  history,
  settings,
}: Evidence): { readonly of: LabName; readonly calls: Operation[] }[] {
  const operations = operationsOf(history)
  return settings.names.map((of) => ({ of, calls: operations.filter(({ name }) => name === of.name) }))
}

function linearizabilityOf(evidence: Evidence): {
  readonly violations: readonly Violation[]
  readonly undecided: ReadonlyMap<string, string>
} {
  const modelOf = ({ kind }: LabName): Model<unknown> =>
    evidence.settings.tokens === false && kind === 'mutex' ? (ownedMutex as Model<unknown>) : MODELS[kind]
  const results = callsOf(evidence).map(({ of, calls }) => checkLinearizability(calls, modelOf(of)))
  const given = results.find(({ verdict }) => verdict === 'unknown')
  return {
    violations: results.flatMap(({ violations }) => violations),
    undecided: new Map(given && [['linearizability', `given up after ${given.steps} steps`]]),
  }
}
