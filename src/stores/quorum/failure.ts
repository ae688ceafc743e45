import type { Unknown, VoteAnswer } from '../../core/contract.ts'
import { QuorumUnavailableError } from '../../core/errors.ts'
import type { NodeState } from '../../core/errors.ts'
import { unknown } from '../../core/unknown.ts'
import { NoAnswerError } from '../redis/failure.ts'

/** What a store answered, for people. */
export function stateOf(node: string, answer: { readonly kind: string } | undefined): NodeState {
  switch (answer?.kind) {
    case 'not-ready': {
      const { readyIn } = answer as Extract<VoteAnswer, { kind: 'not-ready' }>
      const seconds = Math.ceil(readyIn / 1000)
      return { node, state: 'not ready', detail: `came up empty, and votes again in ${seconds} s` }
    }
    case 'unknown':
      return { node, state: 'no answer', detail: reasonOf((answer as Unknown).cause) }
    case 'granted':
    case 'renewed':
      return { node, state: 'granted' }
    case undefined:
      return { node, state: 'asked' }
    default:
      return { node, state: 'busy' }
  }
}

/** It is there, and was not heard in time: it may only be far away. */
export function isLate(answer: { readonly kind: string } | undefined): boolean {
  if (answer?.kind !== 'unknown') return false
  const { cause } = answer as Unknown
  return cause instanceof NoAnswerError && cause.connected
}

/** Too few stores can vote. `advice`: a sentence more. */
export function noQuorum(states: readonly NodeState[], needed: number, advice = ''): Unknown {
  const missing = states.filter(({ state }) => state === 'no answer' || state === 'not ready')
  const words = missing.map(({ node, state, detail }) => `${node}: ${detail ?? state}`).join('; ')
  const usable = states.length - missing.length
  // It was decided before all had answered.
  const some = states.some(({ state }) => state === 'asked') ? 'At most' : 'Only'
  const message = `${some} ${usable} of ${states.length} stores can vote, and ${needed} have to agree. ${words}${advice}`
  return unknown(new QuorumUnavailableError(message, { store: 'quorum', nodes: states, needed }))
}

export function reasonOf(cause: unknown): string {
  return cause instanceof Error && cause.message !== '' ? cause.message : 'no answer'
}
