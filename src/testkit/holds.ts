import type { HistoryEvent } from './history.ts'

/** A stretch of time in which a client believed to hold a lock, shrunk at both ends to what is certain. */
export interface Hold {
  readonly process: string
  readonly op: number
  readonly name: string
  readonly weight: number
  readonly capacity: number
  readonly token: bigint
  /** Tokens that the same lease showed later. */
  readonly laterTokens: readonly bigint[]
  /** When it was asked for, and when it stood in line, if it did. */
  readonly invoked: bigint
  readonly queued: bigint | undefined
  /** Its process had nothing of this name that it could have handed on: a claim of its own was made for it. */
  readonly fresh?: boolean
  readonly from: bigint
  /** Of a writer: from when on it only read. */
  readonly readsFrom?: bigint
  /** Not before `from`; the same if nothing is certain. */
  readonly to: bigint
}

/** The grants of a history, in the order in which they were returned. */
export function holdsOf(events: readonly HistoryEvent[]): Hold[] {
  const stories = new Map<string, HistoryEvent[]>()
  for (const event of events) {
    const key = `${event.process}\n${event.op}`
    const story = stories.get(key)
    if (story === undefined) stories.set(key, [event])
    else story.push(event)
  }
  const fresh = freshOf(stories.values())
  return [...stories.values()]
    .flatMap((story) => {
      const hold = holdOf(story)
      return hold === undefined ? [] : { ...hold, ...(fresh.has(story) && { fresh: true }) }
    })
    .sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0))
}

/**
 * Stories that began when all before them, of their process and name, had ended with a release that the store confirmed.
 * After one that ended otherwise a claim may be on its way that nobody wants any more, and that a later task is given.
 */
function freshOf(stories: Iterable<readonly HistoryEvent[]>): Set<readonly HistoryEvent[]> {
  const groups = new Map<string, (readonly HistoryEvent[])[]>()
  for (const story of stories) {
    const [asked] = story
    if (asked === undefined) continue
    const key = `${asked.process}\n${asked.name}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [story])
    else group.push(story)
  }
  const fresh = new Set<readonly HistoryEvent[]>()
  for (const group of groups.values()) {
    /** When all so far had been given back; undefined once one of them was not. */
    let free: bigint | undefined = 0n
    for (const story of group.sort((a, b) => ((a[0]?.at ?? 0n) < (b[0]?.at ?? 0n) ? -1 : 1))) {
      if (free !== undefined && free <= (story[0]?.at ?? 0n)) fresh.add(story)
      const given = story.find(({ kind, phase }) => kind === 'release' && phase === 'ok')?.at
      if (free === undefined || given === undefined) free = undefined
      else if (given > free) free = given
    }
  }
  return fresh
}

function holdOf(story: readonly HistoryEvent[]): Hold | undefined {
  const find = (kind: HistoryEvent['kind'], phase: HistoryEvent['phase']): HistoryEvent | undefined =>
    story.find((event) => event.kind === kind && event.phase === phase)
  const asked = find('acquire', 'invoke')
  const got = find('acquire', 'ok')
  if (asked === undefined || got?.token === undefined) return undefined
  const checks = story.filter(({ kind }) => kind === 'check')
  const downgrade = find('downgrade', 'invoke')
  return {
    process: got.process,
    op: got.op,
    name: got.name,
    weight: asked.weight ?? 1,
    capacity: asked.capacity ?? 1,
    token: got.token,
    laterTokens: checks.flatMap(({ token }) => token ?? []),
    invoked: asked.at,
    queued: find('acquire', 'queued')?.at,
    from: got.at,
    ...(downgrade && { readsFrom: downgrade.at }),
    to: endOf(got, checks, [find('release', 'invoke'), find('lost', 'ok')]),
  }
}

/** The earliest of: the end of the last belief, the call of the release, the news of the loss. */
function endOf(
  got: HistoryEvent,
  checks: readonly HistoryEvent[],
  ends: readonly (HistoryEvent | undefined)[],
): bigint {
  const believed = [got, ...checks].flatMap(({ validUntil }) => validUntil ?? [])
  const latest = believed.reduce<bigint | undefined>((a, b) => (a === undefined || b > a ? b : a), undefined)
  const known = [latest, ...ends.map((event) => event?.at)].filter((at) => at !== undefined)
  // A process that was killed and never said how long it believed proves nothing.
  const end =
    known.reduce<bigint | undefined>((a, b) => (a === undefined || b < a ? b : a), undefined) ?? got.at
  return end > got.at ? end : got.at
}
