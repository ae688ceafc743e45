import type { AnswerOf, QueueCommand } from '../../core/claim-queue.ts'
import type { ClaimAnswer, ClaimRequest, ReleaseResult, RenewRequest, Unknown } from '../../core/contract.ts'
import { unknown } from '../../core/unknown.ts'
import { DatabaseError } from './failure.ts'

export const NO_ANSWER: Unknown = unknown(new DatabaseError('There was no answer', ''))

export const RELEASED: ReleaseResult = { released: { kind: 'released' } }

/** The name was free, and nobody waits behind. */
export function heldAlone(token: bigint, { tokens }: ClaimRequest): ClaimAnswer {
  return { kind: 'held', token, count: tokens, contended: false }
}

/** What a name without a row answers, if that needs no row. */
export function answerOfNothing(command: QueueCommand): AnswerOf[QueueCommand['kind']] | undefined {
  if (command.kind === 'renew' || command.kind === 'downgrade') return { kind: 'lost' }
  return command.kind === 'release' && command.next === undefined
    ? { released: { kind: 'not-held' } }
    : undefined
}

/** That the claim is not there: for good, so whoever hears it asks no more. */
export const saysGone = (answer: AnswerOf[QueueCommand['kind']]): boolean =>
  'released' in answer ? answer.released.kind === 'not-held' : /^(lost|not-held)$/.test(answer.kind)

export function isComplete<T>(answers: readonly (T | undefined)[]): answers is readonly T[] {
  return answers.every((answer) => answer !== undefined)
}

export function bothUnknown(answer: Unknown, next: ClaimRequest | undefined): ReleaseResult {
  return next === undefined ? { released: answer } : { released: answer, next: answer }
}

export function groupByName(requests: readonly RenewRequest[]): Map<string, RenewRequest[]> {
  const groups = new Map<string, RenewRequest[]>()
  for (const request of requests) {
    const group = groups.get(request.name)
    if (group === undefined) groups.set(request.name, [request])
    else group.push(request)
  }
  return groups
}
