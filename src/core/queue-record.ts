import { emptyQueue } from './queue-state.ts'
import type { Holder, QueueState, Waiter } from './queue-state.ts'

/** A queue as plain data: what a store writes down between two commands. Times are milliseconds of the store's clock. */
export interface QueueRecord {
  readonly fence: number
  readonly capacity: number
  readonly holders: readonly Readonly<Holder>[]
  /** In the order in which they came. */
  readonly waiters: readonly Readonly<Waiter>[]
  /** Withdrawn ids, and until when they are refused. */
  readonly withdrawn: Readonly<Record<string, number>>
}

/** JSON can carry it. */
export function toRecord({ fence, capacity, holders, waiters, withdrawn }: QueueState): QueueRecord {
  return {
    fence,
    capacity,
    holders: Array.from(holders.values(), (holder) => ({ ...holder })),
    waiters: Array.from(waiters.values(), (waiter) => ({ ...waiter })),
    withdrawn: Object.fromEntries(withdrawn),
  }
}

/** `undefined`, or what a database says instead: nothing is written of this name. `fence`: no token up to this one is given (again). */
export function fromRecord(record: QueueRecord | null | undefined, fence = 0): QueueState {
  const state = emptyQueue(fence)
  if (record !== undefined && record !== null) takeUp(state, record)
  return state
}

/** Puts what was written down into a queue that has nothing in it yet. */
export function takeUp(
  state: QueueState,
  { fence, capacity, holders, waiters, withdrawn }: QueueRecord,
): void {
  state.fence = Math.max(state.fence, fence)
  state.capacity = capacity
  for (const holder of holders) {
    state.holders.add({ ...holder })
    state.used += holder.weight
    state.nextExpiry = Math.min(state.nextExpiry, holder.expiresAt)
  }
  state.waiters = new Map(waiters.map((waiter) => [waiter.id, { ...waiter }]))
  state.withdrawn = new Map(Object.entries(withdrawn))
}
