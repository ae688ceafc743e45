import type { QueueRecord } from '../../core/queue-record.ts'
import type { Holder, QueueState, Waiter } from '../../core/queue-state.ts'
import type { Clocks } from './clocks.ts'

/** What the server knows of a claim besides what the store does. */
export interface Maker {
  /** The name of its principal. */
  readonly who: string
  /** What it was last taken or renewed for. */
  readonly ttl: number | undefined
}

export type MakerOf = (id: string) => Maker | undefined

type States = Iterable<readonly [string, Readonly<QueueState>]>

/**
 * All claims of a server when it stopped, as lines of JSON: first what is said of all of them, then for each name a line with
 * its name, and one for each holder, waiter and withdrawn id. A server may have claims as many as its memory holds: as one
 * text they would need several times that, at the one moment that must not fail. Times are milliseconds from the stop,
 * for its clock means nothing to the next run.
 */
interface Head {
  readonly version: number
  /** When that was: see `Clocks`. */
  readonly boot: string | null
  readonly uptime: number
  readonly wall: number
}

type Line =
  | readonly ['name', name: string, fence: number, capacity: number]
  | readonly ['holder', Holder, who: string | null, ttl?: number | undefined]
  | readonly ['waiter', Waiter, who: string | null]
  | readonly ['withdrawn', id: string, until: number]

/** Another layout has another number, and is not read: the leases in it are waited for. */
const VERSION = 2
/** Uptime comes in hundredths of a second. */
const RESOLUTION_MS = 50

export function* save(states: States, clocks: Clocks, makerOf: MakerOf): Iterable<string> {
  const now = clocks.mono()
  const [uptime, wall] = [clocks.uptime(), clocks.wall()]
  yield textOf({ version: VERSION, boot: clocks.boot, uptime, wall } satisfies Head)
  for (const [name, { fence, capacity, holders, waiters, withdrawn }] of states) {
    yield textOf(['name', name, fence, capacity])
    for (const holder of holders.values()) {
      const { who = null, ttl } = makerOf(holder.id) ?? {}
      yield textOf(['holder', { ...holder, expiresAt: holder.expiresAt - now }, who, ttl])
    }
    for (const waiter of waiters.values()) {
      const who = makerOf(waiter.id)?.who ?? null
      yield textOf(['waiter', { ...waiter, keptUntil: waiter.keptUntil - now }, who])
    }
    for (const [id, until] of withdrawn) yield textOf(['withdrawn', id, until - now])
  }
}

const textOf = (line: Head | Line): string => `${JSON.stringify(line)}\n`

/** What the former run left of one name. Its tokens are below the horizon's. */
export interface FormerName {
  readonly name: string
  readonly record: QueueRecord
  readonly makers: readonly (readonly [id: string, maker: Maker])[]
}

/** Name by name. Null when it is of another layout. The lines are known to be whole. */
export function load(lines: Iterable<string>, clocks: Clocks): Iterable<FormerName> | null {
  const rest = lines[Symbol.iterator]()
  const first = rest.next()
  const head = first.done === true ? null : (JSON.parse(first.value) as Head)
  return head?.version === VERSION ? names(rest, head, clocks) : null
}

function* names(lines: Iterator<string>, head: Head, clocks: Clocks): Iterable<FormerName> {
  const now = clocks.mono()
  const moved = now - passedSince(head, clocks)
  let one: Gathering | null = null
  for (let next = lines.next(); next.done !== true; next = lines.next()) {
    const line = JSON.parse(next.value) as Line
    switch (line[0]) {
      case 'name':
        if (one !== null) yield one.done()
        one = new Gathering(line[1], line[2], line[3])
        break
      case 'holder':
        one?.holders.push({ ...line[1], expiresAt: line[1].expiresAt + moved })
        if (line[2] !== null) one?.makers.push([line[1].id, { who: line[2], ttl: line[3] ?? undefined }])
        break
      case 'waiter':
        // Nobody could show a sign of life to a server that was not there.
        one?.waiters.push({ ...line[1], keptUntil: now + line[1].patience })
        if (line[2] !== null) one?.makers.push([line[1].id, { who: line[2], ttl: line[1].ttl }])
        break
      case 'withdrawn':
        one?.withdrawn.push([line[1], line[2] + moved])
        break
    }
  }
  if (one !== null) yield one.done()
}

/** The lines of one name. */
class Gathering {
  readonly holders: Holder[] = []
  readonly waiters: Waiter[] = []
  readonly withdrawn: [id: string, until: number][] = []
  readonly makers: [id: string, maker: Maker][] = []
  private readonly name: string
  private readonly fence: number
  private readonly capacity: number

  constructor(name: string, fence: number, capacity: number) {
    this.name = name
    this.fence = fence
    this.capacity = capacity
  }

  done(): FormerName {
    const { name, fence, capacity, holders, waiters, makers } = this
    const withdrawn = Object.fromEntries(this.withdrawn)
    return { name, record: { fence, capacity, holders, waiters, withdrawn }, makers }
  }
}

/**
 * How much time has passed for certain. Whoever holds a lease believes in it for as long as it was given, so too little
 * is safe and too much is not. Wall clocks are set, and uptime is that of one machine, or of one container: within
 * one boot, what both say has passed. After a reboot, or on another machine, nothing is certain, and leases last for as
 * long as they had left.
 */
function passedSince({ boot, uptime, wall }: Head, clocks: Clocks): number {
  if (boot === null || boot !== clocks.boot) return 0
  return Math.max(0, Math.min(clocks.uptime() - uptime, clocks.wall() - wall) - RESOLUTION_MS)
}
