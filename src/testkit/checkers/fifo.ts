import type { HistoryEvent } from '../history.ts'
import type { Hold } from '../holds.ts'
import { byName } from './violation.ts'
import type { Violation } from './violation.ts'

export interface FifoResult {
  /** How many grants that were asked for later went before the unluckiest one. */
  readonly maxBypass: number
  readonly violations: readonly Violation[]
}

/** A wait that stood in line and ended without a grant. */
export interface GaveUp {
  readonly process: string
  readonly op: number
  readonly name: string
  readonly queued: bigint
  readonly until: bigint
}

/** The waits of a history that were given up in line. */
export function gaveUpOf(events: readonly HistoryEvent[]): GaveUp[] {
  const inLine = new Map<string, bigint>()
  return events.flatMap(({ process, op, name, kind, phase, at }) => {
    if (kind !== 'acquire') return []
    const key = `${process}\n${op}`
    if (phase === 'queued' && !inLine.has(key)) inLine.set(key, at)
    const queued = inLine.get(key)
    return phase === 'fail' && queued !== undefined ? [{ process, op, name, queued, until: at }] : []
  })
}

/**
 * Who stood in line before another one asked is granted first. The tokens tell in which order grants were made; whoever
 * gave up was passed by what had been granted until then. `allowed` is how many later ones may go before: 0 where the
 * queue is strict, a turn's budget where a process hands a grant on.
 */
export function checkFifo(
  holds: readonly Hold[],
  allowed: number = 0,
  gaveUp: readonly GaveUp[] = [],
): FifoResult {
  let maxBypass = 0
  const violations: Violation[] = []
  const found = (count: number, who: string, at: bigint): void => {
    maxBypass = Math.max(maxBypass, count)
    if (count <= allowed) return
    violations.push({ rule: 'fifo', message: `${count} that came later went before ${who}`, at })
  }
  const groups = byName(holds)
  for (const group of groups.values()) {
    for (const { hold, count } of bypasses(group))
      found(count, `${hold.process}#${hold.op} of "${hold.name}" (token ${hold.token})`, hold.from)
  }
  for (const { process, op, name, queued, until } of gaveUp) {
    const before = (groups.get(name) ?? []).filter(({ invoked, from }) => invoked > queued && from < until)
    found(before.length, `${process}#${op} of "${name}", which gave up`, until)
  }
  return { maxBypass, violations }
}

/** For each hold that stood in line, counts those that were asked for after that and have a smaller token. */
function bypasses(holds: readonly Hold[]): { readonly hold: Hold; readonly count: number }[] {
  const ranked = [...holds].sort((a, b) => (a.token < b.token ? -1 : 1))
  const rank = new Map(ranked.map((hold, index) => [hold, index + 1]))
  const smaller = new RankCounter(holds.length)
  const latestFirst = [...holds].sort((a, b) => (a.invoked > b.invoked ? -1 : 1))
  const waited = holds
    .flatMap((hold) => (hold.queued === undefined ? [] : [{ hold, queued: hold.queued }]))
    .sort((a, b) => (a.queued > b.queued ? -1 : 1))
  let next = 0
  return waited.map(({ hold, queued }) => {
    for (
      let later = latestFirst[next];
      later !== undefined && later.invoked > queued;
      later = latestFirst[next]
    ) {
      smaller.add(rank.get(later) ?? 0)
      next += 1
    }
    return { hold, count: smaller.upTo((rank.get(hold) ?? 0) - 1) }
  })
}

/** Counts how many of the added ranks are at most some rank, in logarithmic time (a Fenwick tree). */
class RankCounter {
  private readonly sums: number[]

  constructor(size: number) {
    this.sums = Array<number>(size + 1).fill(0)
  }

  add(rank: number): void {
    for (let at = rank; at < this.sums.length; at += at & -at) this.sums[at] = (this.sums[at] ?? 0) + 1
  }

  upTo(rank: number): number {
    let count = 0
    for (let at = rank; at > 0; at -= at & -at) count += this.sums[at] ?? 0
    return count
  }
}
