import type { HistoryEvent } from '../history.ts'

/** One call on a lock, as a search for an order of all calls sees it: it took effect at one moment of its time. */
export interface Operation {
  readonly process: string
  readonly name: string
  readonly action: 'acquire' | 'downgrade' | 'release'
  /** Whose grant: an acquire and its release have the same, and so has a re-entry. */
  readonly owner: string
  readonly call: bigint
  /** Undefined: nobody knows when, or whether, it took effect. */
  readonly end: bigint | undefined
  readonly token: bigint
  readonly weight: number
  readonly capacity: number
}

/**
 * The calls of a history whose effect is known. An acquire that failed may have held the lock for a moment on its way out,
 * which forbids nothing to anybody and is left out. A lease that ran out is released at some time after its belief ended.
 */
export function operationsOf(events: readonly HistoryEvent[]): Operation[] {
  const stories = new Map<string, HistoryEvent[]>()
  for (const event of events) {
    const key = `${event.process}#${event.op}`
    const story = stories.get(key)
    if (story === undefined) stories.set(key, [event])
    else story.push(event)
  }
  return [...stories].flatMap(([owner, story]) => callsOf(owner, story))
}

function callsOf(owner: string, story: readonly HistoryEvent[]): Operation[] {
  const find = (kind: HistoryEvent['kind'], phase: HistoryEvent['phase']): HistoryEvent | undefined =>
    story.find((event) => event.kind === kind && event.phase === phase)
  const asked = find('acquire', 'invoke')
  const got = find('acquire', 'ok')
  if (asked === undefined || got?.token === undefined) return []
  const { process, name } = asked
  const { weight = 1, capacity = 1 } = asked
  const common = { process, name, owner, token: got.token, weight, capacity }
  const acquire: Operation = { ...common, action: 'acquire', call: asked.at, end: got.at }
  const given = find('release', 'ok')
  const ended = endOfBelief(story, got)
  const release: Operation = { ...common, action: 'release', call: ended, end: given?.at }
  const asks = find('downgrade', 'invoke')
  if (asks === undefined) return [acquire, release]
  return [
    acquire,
    { ...common, action: 'downgrade', call: asks.at, end: find('downgrade', 'ok')?.at },
    release,
  ]
}

function endOfBelief(story: readonly HistoryEvent[], got: HistoryEvent): bigint {
  const beliefs = story.flatMap(({ validUntil }) => validUntil ?? [])
  const last = beliefs.reduce<bigint>((a, b) => (b > a ? b : a), got.at)
  const said = story.filter(
    ({ kind, phase }) => (kind === 'release' && phase === 'invoke') || kind === 'lost',
  )
  const end = said.reduce<bigint>((earliest, { at }) => (at < earliest ? at : earliest), last)
  return end > got.at ? end : got.at
}
