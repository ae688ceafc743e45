import type {
  ClaimInfo,
  ListPage,
  ListQuery,
  MaybePromise,
  NameInfo,
  Unknown,
  Voter,
  VoteInfo,
  Free,
} from '../../core/contract.ts'
import { isUnknown, noQuorum, stateOf } from './failure.ts'
import type { Quorum } from './quorum.ts'

/** Who holds a name: the claim that a majority says so of. */
export async function inspect(quorum: Quorum, name: string, timeout: number): Promise<NameInfo | Unknown> {
  const seen = await everybody<VoteInfo | Free>(quorum, (voter) => voter.inspect(name, timeout))
  if (isUnknown(seen)) return seen
  const byClaim = new Map<string, VoteInfo[]>()
  for (const one of seen) {
    if ('kind' in one) continue
    const key = `${one.id} ${one.attempt}`
    byClaim.set(key, [...(byClaim.get(key) ?? []), one])
  }
  const holders = [...byClaim.values()].filter(({ length }) => length >= quorum.majority).map(held(quorum))
  return { name, capacity: 1, holders, waiters: [] }
}

/** It lasts as long as a majority remembers it. */
function held({ majority }: Quorum): (seen: readonly VoteInfo[]) => ClaimInfo {
  return (seen) => {
    const [first] = seen as [VoteInfo]
    const token = agreed(seen, majority)
    const ends = seen.map(({ expiresIn }) => expiresIn).sort((a, b) => b - a)
    return { id: first.id, owner: first.owner, weight: 1, token, expiresIn: ends[majority - 1] ?? 0 }
  }
}

/**
 * The token that a majority accepted. A store whose vote came after that may have proposed a larger one, which nobody
 * has. Where none has a majority, because stores are away or have yet to accept it, it is the largest.
 */
function agreed(seen: readonly VoteInfo[], majority: number): bigint {
  const falling = seen.map(({ token }) => token).sort((a, b) => (a < b ? 1 : -1)) as [bigint, ...bigint[]]
  return falling.find((token, at) => falling[at + majority - 1] === token) ?? falling[0]
}

/**
 * A page of the names that a majority has. Every store is asked for all of its names each time: what two stores call
 * their next page has nothing in common.
 */
export async function list(
  quorum: Quorum,
  { prefix = '', limit = 100, cursor = '' }: ListQuery,
  timeout: number,
): Promise<ListPage | Unknown> {
  const seen = await everybody<Names>(quorum, (voter) => named(voter.names(prefix, timeout)))
  if (isUnknown(seen)) return seen
  const counts = new Map<string, number>()
  for (const { names } of seen) {
    for (const name of names) if (name > cursor) counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  const held = [...counts].filter(([, count]) => count >= quorum.majority).map(([name]) => name)
  const names = held.sort((a, b) => (a < b ? -1 : 1)).slice(0, limit)
  return held.length > limit ? { names, cursor: names.at(-1) ?? '' } : { names }
}

interface Names {
  readonly kind: 'names'
  readonly names: readonly string[]
}

async function named(given: MaybePromise<readonly string[] | Unknown>): Promise<Names | Unknown> {
  const names = await given
  return 'kind' in names ? names : { kind: 'names', names }
}

/** What those say that answer, if they are a majority. */
function everybody<T extends object>(
  quorum: Quorum,
  call: (voter: Voter) => MaybePromise<T | Unknown>,
): Promise<T[] | Unknown> {
  const { nodes, majority } = quorum
  return new Promise((resolve) => {
    const answers: (T | Unknown)[] = []
    let pending = nodes.length
    quorum.askAll<Seen<T>>(
      async (voter) => seenAs(await call(voter)),
      (answer, at) => {
        answers[at] = answer.kind === 'unknown' ? answer : answer.what
        if (--pending > 0) return
        const seen = answers.filter((one): one is T => !isUnknown(one))
        if (seen.length >= majority) return resolve(seen)
        resolve(
          noQuorum(
            nodes.map(({ label }, node) =>
              stateOf(label, isUnknown(answers[node]) ? answers[node] : { kind: 'seen' }),
            ),
            majority,
          ),
        )
      },
    )
  })
}

type Seen<T> = { readonly kind: 'seen'; readonly what: T } | Unknown

function seenAs<T extends object>(answer: T | Unknown): Seen<T> {
  return isUnknown(answer) ? answer : { kind: 'seen', what: answer }
}
