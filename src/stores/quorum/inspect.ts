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
import { InvalidArgumentError } from '../../core/errors.ts'
import { isUnknown, unknown, unknownForGood } from '../../core/unknown.ts'
import { noQuorum, stateOf } from './failure.ts'
import type { Quorum } from './quorum.ts'

/** Who holds a name: the claim that a majority says so of. */
export async function inspect(quorum: Quorum, name: string, timeout: number): Promise<NameInfo | Unknown> {
  const seen = await look(quorum, name, timeout)
  if (isUnknown(seen)) return seen
  return { name, capacity: 1, holders: [...holdersOf(quorum, seen)].map(held(quorum)), waiters: [] }
}

/** What each store says of a name, if a majority answers. */
function look(quorum: Quorum, name: string, timeout: number): Promise<readonly Look[] | Unknown> {
  return everybody<VoteInfo | Free>(quorum, (voter) => voter.inspect(name, timeout))
}

type Look = VoteInfo | Free | Unknown

/** What stores say of the claims that a majority has. */
function holdersOf(
  { majority }: Pick<Quorum, 'majority'>,
  seen: readonly Look[],
): readonly (readonly VoteInfo[])[] {
  const byClaim = new Map<string, VoteInfo[]>()
  for (const one of seen) {
    if ('kind' in one) continue
    const key = `${one.id} ${one.attempt}`
    byClaim.set(key, [...(byClaim.get(key) ?? []), one])
  }
  return [...byClaim.values()].filter(({ length }) => length >= majority)
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

/** A page that takes longer than this part of its time ends where it is: the next one goes on from there. */
const ENOUGH = 0.25

const LEFT_OUT = unknown(new Error('did not answer when it was asked for a former page'))

/** Where the next page begins: the stores that are done, and where to go on at which other one. */
interface Place {
  readonly done: ReadonlySet<number>
  readonly at: number
  readonly cursor: string | undefined
}

/**
 * A page of the names that a majority has. The stores are gone through one after the other, each by its own cursor, and
 * every name that one has is looked up at all of them; it is shown with the first one that has it. Whoever has a majority
 * is at one of any so many stores that the rest is none: the others need not be gone through, and one that does not answer
 * is left out. As with SCAN, a name that is held all the time is shown, unless a store lost and regained it meanwhile.
 */
export async function list(
  quorum: Quorum,
  { prefix = '', limit = 100, cursor }: ListQuery,
  timeout: number,
): Promise<ListPage | Unknown> {
  const { nodes, majority, settings } = quorum
  const until = settings.clock.now() + timeout * ENOUGH
  const place = placeOf(cursor, nodes.length)
  if (place === undefined) return unknownForGood(badCursor())
  const done = new Set(place.done)
  const names: string[] = []
  const problems: (Unknown | undefined)[] = []
  let { at, cursor: from } = place
  while (at < nodes.length && done.size <= nodes.length - majority) {
    const page = await pageAt(quorum, at, { prefix, limit: limit - names.length, cursor: from }, timeout / 4)
    if (isUnknown(page)) problems[at] = page
    else {
      const shown = await shownOf(quorum, page.names, done, timeout / 4)
      if (isUnknown(shown)) return shown
      names.push(...shown)
      if (page.cursor === undefined) done.add(at)
    }
    from = isUnknown(page) ? undefined : page.cursor
    if (from === undefined) at++
    const isOver = at === nodes.length || done.size > nodes.length - majority
    if (!isOver && (names.length === limit || settings.clock.now() > until))
      return { names: names.sort(), cursor: cursorOf({ done, at, cursor: from }) }
  }
  if (done.size > nodes.length - majority) return { names: names.sort() }
  return noQuorum(
    nodes.map(({ label }, node) =>
      stateOf(label, done.has(node) ? { kind: 'seen' } : (problems[node] ?? LEFT_OUT)),
    ),
    majority,
  )
}

function pageAt(quorum: Quorum, at: number, query: ListQuery, timeout: number): Promise<ListPage | Unknown> {
  return new Promise((resolve) => {
    quorum.ask<Seen<ListPage>>(
      at,
      async (voter) => seenAs(await voter.names(query, timeout)),
      (answer) => resolve(answer.kind === 'unknown' ? answer : answer.what),
    )
  })
}

/** Those that a majority has, and no store that was gone through already. */
async function shownOf(
  quorum: Quorum,
  names: readonly string[],
  done: ReadonlySet<number>,
  timeout: number,
): Promise<readonly string[] | Unknown> {
  // What is kept under one name may be of a later version, or somebody else's. That says nothing of the others.
  const ask = (name: string): Promise<readonly Look[] | Unknown> =>
    everybody<VoteInfo | Free>(quorum, (voter) => voter.inspect(name, timeout), isUnreadable)
  const looks = await Promise.all(names.map(ask))
  const problem = looks.find(isUnknown)
  if (problem !== undefined) return problem
  return names.filter((_, index) => {
    const seen = looks[index] as readonly Look[]
    return mayBeHeld(quorum, seen) && !seen.some((one, at) => done.has(at) && !('kind' in one))
  })
}

/** Whether a majority has it, if those that cannot tell have it too. */
function mayBeHeld({ majority }: Quorum, seen: readonly Look[]): boolean {
  const unreadable = seen.filter(isUnreadable).length
  return unreadable >= majority || holdersOf({ majority: majority - unreadable }, seen).length > 0
}

/** What a store keeps there, it cannot read, now or later. */
function isUnreadable(one: unknown): boolean {
  return isUnknown(one) && one.retryable === false
}

const cursorOf = ({ done, at, cursor = '' }: Place): string =>
  `${[...done].join('-')}.${at}.${Buffer.from(cursor).toString('base64url')}`

function placeOf(cursor: string | undefined, count: number): Place | undefined {
  if (cursor === undefined) return { done: new Set(), at: 0, cursor: undefined }
  const [, done, at, rest = ''] = /^((?:\d+(?:-\d+)*)?)\.(\d+)\.([\w-]*)$/.exec(cursor) ?? []
  if (done === undefined || !(Number(at) < count)) return undefined
  const gone = done === '' ? [] : done.split('-').map(Number)
  return {
    done: new Set(gone),
    at: Number(at),
    cursor: rest === '' ? undefined : Buffer.from(rest, 'base64url').toString(),
  }
}

function badCursor(): InvalidArgumentError {
  return new InvalidArgumentError('cursor must be one that a former page came with', { argument: 'cursor' })
}

/** What each says, if a majority answers. `alsoCounts`: what is an answer too. */
function everybody<T extends object>(
  quorum: Quorum,
  call: (voter: Voter) => MaybePromise<T | Unknown>,
  alsoCounts: (answer: unknown) => boolean = () => false,
): Promise<readonly (T | Unknown)[] | Unknown> {
  const { nodes, majority } = quorum
  return new Promise((resolve) => {
    const answers: (T | Unknown)[] = []
    let pending = nodes.length
    quorum.askAll<Seen<T | Unknown>>(
      // Such an answer must not be taken for a store that is not well.
      async (voter) => {
        const answer = await call(voter)
        return alsoCounts(answer) ? { kind: 'seen', what: answer } : seenAs(answer)
      },
      (answer, at) => {
        answers[at] = answer.kind === 'unknown' ? answer : answer.what
        if (--pending > 0) return
        const counted = answers.filter((one) => !isUnknown(one) || alsoCounts(one))
        if (counted.length >= majority) return resolve(answers)
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
