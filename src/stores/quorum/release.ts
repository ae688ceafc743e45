import type { MaybePromise, Released, ReleaseAnswer } from '../../core/contract.ts'
import { noQuorum, stateOf } from './failure.ts'
import type { Node } from './node.ts'
import type { Quorum } from './quorum.ts'

/** A release, with how many stores had confirmed it by then. The others are told too, and forget it in any case. */
export interface ConfirmedRelease extends Released {
  readonly confirmed: number
  readonly of: number
}

/** Tells one store. */
export type Tell = (node: Node, heard: (answer: ReleaseAnswer, at: number) => void) => void

/**
 * Tells every store, also those that do not answer: what is left there would stand in everybody's way until its ttl ends.
 * Released is what a majority let go; if so many did not have it that no majority can, somebody else may hold it by now.
 * `everywhere`: every store is waited for. What is not ours has a holder that renews it, and brings it back at those that
 * let it go while any other one has not yet heard of it.
 */
export function leave<R>(
  quorum: Quorum,
  tell: Tell,
  resultOf: (answer: ReleaseAnswer) => R,
  everywhere = false,
): MaybePromise<R> {
  const { nodes, majority } = quorum
  const answers: (ReleaseAnswer | undefined)[] = []
  let released = 0
  let answered = 0
  let pending = nodes.length
  let outcome: R | null = null
  let resolve: ((result: R) => void) | null = null
  const decide = (answer: ReleaseAnswer): void => {
    outcome = resultOf(answer)
    resolve?.(outcome)
  }
  const heard = (answer: ReleaseAnswer, at: number): void => {
    answers[at] = answer
    pending--
    if (answer.kind === 'released') released++
    if (answer.kind !== 'unknown') answered++
    if (outcome !== null) return
    if (released >= majority && !everywhere) return decide(confirmed(released, nodes.length))
    if (pending > 0) return
    if (answered < majority) {
      return decide(
        noQuorum(
          nodes.map(({ label }, node) => stateOf(label, answers[node])),
          majority,
        ),
      )
    }
    // A few may keep what has ended a moment longer than those that somebody else has been granted it by since.
    const gone = answered - released > nodes.length - majority
    decide(released === 0 || gone ? { kind: 'not-held' } : confirmed(released, nodes.length))
  }
  for (const node of nodes) tell(node, heard)
  return outcome ?? new Promise((settle) => (resolve = settle))
}

function confirmed(count: number, of: number): ConfirmedRelease {
  return { kind: 'released', confirmed: count, of }
}
