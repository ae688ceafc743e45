import { emptyQueue } from '../../core/claim-queue.ts'
import type { QueueState } from '../../core/claim-queue.ts'

/**
 * A name is one row. The first holder stands in columns of its own, so that a name which one claim has to itself is
 * taken, kept and freed by statements without a look at anything else; everybody else stands in the `queue` column, as
 * JSON that people can read. One row also means that every step is one autocommitted statement: no transaction that a
 * stopped process could leave open, and no two locks that could be taken in different orders.
 * (A table of waiters was tried on paper: it needs a transaction per step, and with MySQL nothing ends one whose
 * client went silent.)
 */
export interface Columns {
  readonly capacity: number
  readonly fence: number
  /** How many wait; also part of `queue`, but a renewal has to tell it without reading that. */
  readonly waiting: number
  /** The first holder's claim, or null. */
  readonly claim: string | null
  readonly owner: string | null
  readonly weight: number
  readonly token: number
  readonly tokens: number
  readonly expires: number
  readonly queue: string | null
}

export interface Row extends Columns {
  readonly name: string
  /** Grows with every change: a step is written only over the row that it read. */
  readonly version: number
  /** The server's clock when the row was read, in microseconds. */
  readonly now: number
}

/** As selected by `read.sql`, in this order. */
export type Cells = readonly unknown[]

export function rowOf(cells: Cells, text: (cell: unknown) => string): Row {
  const nullable = (cell: unknown): string | null => (cell === null ? null : text(cell))
  const [name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires, queue, now] =
    cells
  return {
    name: text(name),
    version: Number(version),
    capacity: Number(capacity),
    fence: Number(fence),
    waiting: Number(waiting),
    claim: nullable(claim),
    owner: nullable(owner),
    weight: Number(weight),
    token: Number(token),
    tokens: Number(tokens),
    expires: Number(expires),
    queue: nullable(queue),
    now: Number(now),
  }
}

/** A text as `guard.sql` selects it. */
export const afterSign = (cell: unknown): string => String(cell).slice(1)

/** The `queue` column. Times are microseconds of the server's clock. */
interface StoredQueue {
  readonly holders: readonly StoredHolder[]
  readonly waiters: readonly StoredWaiter[]
  /** Withdrawn claims, and until when they are refused. */
  readonly withdrawn: Readonly<Record<string, number>>
}

interface StoredHolder {
  readonly id: string
  readonly owner: string
  readonly weight: number
  readonly token: number
  readonly tokens: number
  readonly expires: number
}

interface StoredWaiter {
  readonly id: string
  readonly owner: string
  readonly weight: number
  readonly tokens: number
  /** Milliseconds. */
  readonly ttl: number
  readonly patience: number
  /** When it last said that it is there. */
  readonly heard: number
}

export interface Loaded {
  readonly state: QueueState
  readonly stored: StoredQueue
}

const EMPTY: StoredQueue = { holders: [], waiters: [], withdrawn: {} }

/**
 * `slack`: a waiter is kept for that many times its patience. More than 1 lets most polls be answered without a write:
 * while a waiter has more than its patience left, nothing about it has to change.
 */
export function load(row: Row, slack: number): Loaded {
  const stored = row.queue === null ? EMPTY : (JSON.parse(row.queue) as StoredQueue)
  const state = emptyQueue(row.fence)
  state.capacity = row.capacity
  const hold = ({ id, owner, weight, token, tokens, expires }: StoredHolder): void => {
    const expiresAt = expires / 1000
    state.holders.add({ id, owner, weight, token, count: tokens, expiresAt })
    state.used += weight
    if (expiresAt < state.nextExpiry) state.nextExpiry = expiresAt
  }
  const { claim, owner, weight, token, tokens, expires } = row
  if (claim !== null) hold({ id: claim, owner: owner ?? '', weight, token, tokens, expires })
  for (const holder of stored.holders) hold(holder)
  if (row.queue !== null) {
    state.waiters = new Map(
      stored.waiters.map(({ heard, ...waiter }) => [
        waiter.id,
        { ...waiter, keptUntil: keptUntil(heard, waiter.patience, slack) },
      ]),
    )
    state.withdrawn = new Map(Object.entries(stored.withdrawn).map(([id, until]) => [id, until / 1000]))
  }
  return { state, stored }
}

/** What to write after the state was stepped at the row's `now`; the same columns if nothing is worth a write. */
export function save({ state, stored }: Loaded, row: Row, slack: number): Columns {
  const [first, ...others] = state.holders.values()
  const heardBefore = new Map(stored.waiters.map((waiter) => [waiter.id, waiter]))
  const waiters = [...state.waiters.values()].map(
    ({ id, owner, weight, tokens, ttl, patience, keptUntil: kept }) => {
      const before = heardBefore.get(id)
      const heard =
        before !== undefined && before.ttl === ttl && before.patience === patience
          ? heardSince(before, kept, row.now, slack)
          : row.now
      return { id, owner, weight, tokens, ttl, patience, heard }
    },
  )
  const withdrawn = Object.fromEntries([...state.withdrawn].map(([id, until]) => [id, micros(until)]))
  const queue: StoredQueue = {
    holders: others.map(({ id, owner, weight, token, count, expiresAt }) => {
      return { id, owner, weight, token, tokens: count, expires: micros(expiresAt) }
    }),
    waiters,
    withdrawn,
  }
  return {
    capacity: state.capacity,
    fence: state.fence,
    waiting: waiters.length,
    claim: first?.id ?? null,
    owner: first?.owner ?? null,
    weight: first?.weight ?? 0,
    token: first?.token ?? 0,
    tokens: first?.count ?? 0,
    expires: first === undefined ? 0 : micros(first.expiresAt),
    queue: others.length + waiters.length + state.withdrawn.size === 0 ? null : JSON.stringify(queue),
  }
}

/** Untouched by the step, or good for longer than its patience even so: as before. Otherwise: heard now. */
function heardSince({ heard, patience }: StoredWaiter, kept: number, now: number, slack: number): number {
  const before = keptUntil(heard, patience, slack)
  return kept === before || before - now / 1000 >= patience ? heard : now
}

function keptUntil(heard: number, patience: number, slack: number): number {
  return heard / 1000 + patience * slack
}

const micros = (ms: number): number => Math.round(ms * 1000)

const COLUMNS = [
  'capacity',
  'fence',
  'waiting',
  'claim',
  'owner',
  'weight',
  'token',
  'tokens',
  'expires',
  'queue',
] as const satisfies readonly (keyof Columns)[]

export function sameColumns(a: Columns, b: Columns): boolean {
  return COLUMNS.every((column) => a[column] === b[column])
}

/** Nothing but the queue differs, and nobody has to be told: somebody in line has shown that he is there. */
export function isSign(
  row: Columns,
  next: Columns,
  { notices, ended }: { readonly notices: readonly unknown[]; readonly ended: readonly unknown[] },
): boolean {
  const others = { ...next, queue: row.queue }
  return next.queue !== null && notices.length + ended.length === 0 && sameColumns(row, others)
}
