import type { Random } from '../../testkit/random.ts'
import type { Fault, FaultKind } from './fault.ts'

/** What a list of faults is made for. */
export interface Target {
  readonly kinds: readonly FaultKind[]
  readonly processes: number
  readonly nodes: number
  readonly names: readonly string[]
  readonly ttl: number
  /** Faults begin before this moment and are over by it. */
  readonly until: number
}

const METHODS: readonly [string, ...string[]] = [
  'any',
  'any',
  'claim',
  'renew',
  'release',
  'withdraw',
  'watch',
]
/** Clock rates that the margins of validity are made for. */
const RATE = 0.004

/** A list of faults from a seed. Not every kind is in every list: some bugs show only where the rest is calm. */
export function faultsFrom(random: Random, target: Target): readonly Fault[] {
  if (target.kinds.length === 0) return []
  const some = target.kinds.filter(() => random.next() < 0.7)
  const kinds = (some.length > 0 ? some : target.kinds) as [FaultKind, ...FaultKind[]]
  const count = 3 + random.below(14)
  const faults = Array.from({ length: count }, () => faultOf(random.pick(kinds), random, target))
  return [...onePerClock(faults)].sort((a, b) => a.at - b.at)
}

/** A clock has one rate, and the last process is never killed: somebody must see what the others left. */
function onePerClock(faults: readonly Fault[]): readonly Fault[] {
  const seen = new Set<string>()
  return faults.filter((fault) => {
    if (fault.kind !== 'clock-rate' && fault.kind !== 'node-clock-rate' && fault.kind !== 'kill') return true
    const key = fault.kind === 'node-clock-rate' ? `node ${fault.node}` : `${fault.kind} ${fault.process}`
    if (seen.has(key)) return false
    seen.add(key)
    return true
  })
}

function faultOf(kind: FaultKind, random: Random, target: Target): Fault {
  const { ttl, processes, nodes, names } = target
  const at = Math.round(random.next() * target.until * 0.9)
  const process = random.below(processes)
  const node = random.below(nodes)
  /** A time from `at` on, mostly short, now and then longer than a lease. */
  const until = (longest: number): number =>
    Math.min(target.until, at + 1 + Math.round(longest * random.next() ** 2))
  switch (kind) {
    case 'delay': {
      const most = random.next() < 0.3 ? ttl : 300
      const some = (): number => (random.next() < 0.5 ? 0 : random.below(most))
      return { kind, at, until: until(2 * ttl), process, request: some(), reply: some(), event: some() }
    }
    case 'loss': {
      const what = random.pick<'request' | 'reply' | 'event'>(['request', 'reply', 'event'])
      return {
        kind,
        at,
        process,
        what,
        method: what === 'event' ? 'any' : random.pick(METHODS),
        times: 1 + random.below(4),
      }
    }
    case 'duplicate':
      return { kind, at, process, method: random.pick(METHODS), later: random.below(ttl * 1.5) }
    case 'echo':
      return { kind, at, process, later: random.below(ttl) }
    case 'partition':
      return { kind, at, until: until(2 * ttl), process, node }
    case 'pause':
    case 'suspend':
      return { kind, at, until: until(2 * ttl), process }
    case 'stall':
      return {
        kind,
        at,
        process,
        reads: 1 + random.below(40),
        ms: 1 + Math.round(2 * ttl * random.next() ** 2),
      }
    case 'kill':
      return { kind, at, process: random.below(Math.max(1, processes - 1)) }
    case 'restart':
      return { kind, at, until: until(ttl), node, memory: random.next() < 0.3 ? 'kept' : 'lost' }
    case 'failover':
      return { kind, at, until: until(ttl / 2), node, behind: random.below(ttl / 2) }
    case 'hand-over': {
      const back = until(ttl / 4)
      // Everybody is where he belongs when the faults are over.
      return { kind, at, until: back, node, stays: random.below(Math.max(1, target.until - back)) }
    }
    case 'clock-jump':
      return { kind, at, process, by: jump(random, ttl) }
    case 'node-clock-jump':
      return { kind, at, node, by: jump(random, ttl) }
    case 'clock-rate':
      return { kind, at: 0, process, rate: rate(random) }
    case 'node-clock-rate':
      return { kind, at: 0, node, rate: rate(random) }
    case 'evict':
      return { kind, at, node, name: names[random.below(names.length)] ?? '' }
  }
}

/** As far off as is allowed, or somewhere in between. */
function rate(random: Random): number {
  const sign = random.next() < 0.5 ? -1 : 1
  return 1 + sign * RATE * (random.next() < 0.5 ? 1 : random.next())
}

function jump(random: Random, ttl: number): number {
  return (random.next() < 0.5 ? -1 : 1) * (1 + random.below(2 * ttl))
}

export function describe(fault: Fault): string {
  const { kind, at, ...rest } = fault
  const details = Object.entries(rest).map(([key, value]) => `${key} ${value}`)
  return `${at} ms: ${kind} ${details.join(', ')}`
}
