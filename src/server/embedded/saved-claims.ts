import type { QueueRecord } from '../../core/queue-record.ts'
import type { MemoryStore } from '../../stores/memory/store.ts'
import type { Clocks } from './clocks.ts'

type Records = ReturnType<MemoryStore['toRecords']>

/** Whose claim it is: the name of the principal, if it is known. */
export type WhoseClaim = (id: string) => string | undefined

/** All claims of a server when it stopped. Times are milliseconds from then, for its clock means nothing to the next run. */
interface Saved {
  readonly version: number
  /** When that was: see `Clocks`. */
  readonly boot: string | null
  readonly uptime: number
  readonly wall: number
  readonly owners: Readonly<Record<string, string>>
  readonly queues: Records
}

/** What the former run left. Its tokens are below the horizon's. */
export interface Former {
  readonly queues: Records
  readonly whose: WhoseClaim
}

/** Another layout has another number, and is not read: the leases in it are waited for. */
const VERSION = 1
/** Uptime comes in hundredths of a second. */
const RESOLUTION_MS = 50

export function save(queues: Records, clocks: Clocks, whose: WhoseClaim): string {
  const now = clocks.mono()
  const owners: Record<string, string> = {}
  for (const [, { holders, waiters }] of queues) {
    for (const { id } of [...holders, ...waiters]) {
      const owner = whose(id)
      if (owner !== undefined) owners[id] = owner
    }
  }
  const moved = queues.map(([name, record]) => [name, movedBy(record, -now)] as const)
  const [uptime, wall] = [clocks.uptime(), clocks.wall()]
  const saved: Saved = { version: VERSION, boot: clocks.boot, uptime, wall, owners, queues: moved }
  return `${JSON.stringify(saved)}\n`
}

/** Null when it is of another layout. `text` is known to be whole. */
export function load(text: string, clocks: Clocks): Former | null {
  const saved = JSON.parse(text) as Saved
  if (saved.version !== VERSION) return null
  const now = clocks.mono()
  const passed = passedSince(saved, clocks)
  const owners = new Map(Object.entries(saved.owners))
  const queues = saved.queues.map(([name, record]) => {
    const { waiters, ...rest } = movedBy(record, now - passed)
    // Nobody could show a sign of life to a server that was not there.
    return [
      name,
      { ...rest, waiters: waiters.map((one) => ({ ...one, keptUntil: now + one.patience })) },
    ] as const
  })
  return { queues, whose: (id) => owners.get(id) }
}

/**
 * How much time has passed for certain. Whoever holds a lease believes in it for as long as it was given, so too little
 * is safe and too much is not. Wall clocks are set, and uptime is that of one machine, or of one container: within
 * one boot, what both say has passed. After a reboot, or on another machine, nothing is certain, and leases last for as
 * long as they had left.
 */
function passedSince({ boot, uptime, wall }: Saved, clocks: Clocks): number {
  if (boot === null || boot !== clocks.boot) return 0
  return Math.max(0, Math.min(clocks.uptime() - uptime, clocks.wall() - wall) - RESOLUTION_MS)
}

function movedBy({ fence, capacity, holders, waiters, withdrawn }: QueueRecord, ms: number): QueueRecord {
  return {
    fence,
    capacity,
    holders: holders.map((holder) => ({ ...holder, expiresAt: holder.expiresAt + ms })),
    waiters: waiters.map((waiter) => ({ ...waiter, keptUntil: waiter.keptUntil + ms })),
    withdrawn: Object.fromEntries(Object.entries(withdrawn).map(([id, until]) => [id, until + ms])),
  }
}
