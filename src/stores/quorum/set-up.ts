import type { AccountableVoter, Unknown, Voter } from '../../core/contract.ts'
import { unknown } from '../../core/unknown.ts'
import type { QuorumClock } from './clock.ts'

export interface SetUpTerms {
  readonly probation: number
  readonly timeout: number
  readonly setTimer: QuorumClock['setTimer']
}

/** Another client that sets the quorum up at the same time is done within one of these pauses. */
const PAUSE_MS = 50
const LOOKS = 4

type Look =
  | { readonly kind: 'unused'; readonly servers: readonly string[] }
  /** Somebody may be setting them up. */
  | { readonly kind: 'some' }
  /** In use, or nobody knows. */
  | { readonly kind: 'other' }

/**
 * Lets the stores of a new quorum vote at once. They are looked at twice: **all of them were unused at the moment between
 * the two**, so nobody holds anything. One look is not enough: its first answers may be old when the last one comes. Nor
 * is one store that is unused by itself: it may stand in for another one, whose votes nobody but a holder knows of.
 * Nothing is waited for if that is not so: an empty store then looks on, as always.
 */
export function setUp(voters: readonly Voter[], terms: SetUpTerms): Promise<void> | undefined {
  if (terms.probation === 0 || !voters.every(isAccountable)) return undefined
  return lookAndBegin(voters, terms)
}

async function lookAndBegin(voters: readonly AccountableVoter[], terms: SetUpTerms): Promise<void> {
  for (let looks = 0; looks < LOOKS; looks++) {
    const first = await look(voters, terms)
    if (first.kind === 'other') return
    const second = first.kind === 'some' ? first : await look(voters, terms)
    if (first.kind === 'unused' && second.kind === 'unused' && same(first.servers, second.servers))
      return begin(voters, second.servers, terms)
    await new Promise<void>((resolve) => void terms.setTimer(resolve, PAUSE_MS))
  }
}

/** A store that refuses looks on; there is nothing else to do about it. */
async function begin(
  voters: readonly AccountableVoter[],
  servers: readonly string[],
  { timeout }: SetUpTerms,
): Promise<void> {
  await Promise.all(voters.map((voter, at) => ask(() => voter.begin(servers[at] ?? '', timeout))))
}

/** Ends as soon as it is certain: a quorum in use must not wait here for a server that is down. */
function look(voters: readonly AccountableVoter[], { probation, timeout }: SetUpTerms): Promise<Look> {
  return new Promise((resolve) => {
    const servers: string[] = []
    let used = 0
    let unused = 0
    let silent = 0
    const heard = (answer: Answer, at: number): void => {
      if (answer.kind === 'unused') servers[at] = answer.server
      if (answer.kind === 'unused') unused++
      else if (answer.kind === 'used') used++
      else silent++
      // More than half were set up already, whoever did it.
      if (used > voters.length / 2) resolve({ kind: 'other' })
      else if (used + unused + silent < voters.length) return
      else if (silent > 0) resolve({ kind: 'other' })
      else if (used > 0) resolve({ kind: unused > 0 ? 'some' : 'other' })
      // One server under two names is refused elsewhere.
      else if (new Set(servers).size < servers.length) resolve({ kind: 'other' })
      else resolve({ kind: 'unused', servers })
    }
    voters.forEach((voter, at) => {
      ask(() => voter.unused(probation, timeout)).then(
        (answer) => heard(answer, at),
        (cause: unknown) => heard(unknown(cause), at),
      )
    })
  })
}

type Answer = Awaited<ReturnType<AccountableVoter['unused']>>

async function ask<T>(call: () => T): Promise<Awaited<T> | Unknown> {
  try {
    return await call()
  } catch (cause) {
    return unknown(cause)
  }
}

const same = (a: readonly string[], b: readonly string[]): boolean =>
  a.every((server, at) => server === b[at])

function isAccountable(voter: Voter): voter is AccountableVoter {
  return 'unused' in voter && 'begin' in voter
}
