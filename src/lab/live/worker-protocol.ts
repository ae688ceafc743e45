import type { HistoryEvent } from '../../testkit/history.ts'
import type { TimelineEvent } from '../record.ts'

/** What a client of the lab is told by the process that started it. The store's address comes this way, never as an argument. */
export interface WorkOrder {
  readonly do: 'begin'
  readonly label: string
  readonly url: string
  readonly token?: string
  readonly names: readonly [string, ...string[]]
  readonly ttl: number
  readonly requestTimeout: number
  readonly patience: number
  readonly resourcePort: number
  /** The longest rest between two sections: where nobody stands in line, who never rests leaves nothing to the others. */
  readonly restMs: number
  readonly seed: number
}

/** Before it looks whether the lease still holds, or between that look and the write, where nothing but a token helps. */
export type Place = 'before the check' | 'after the check'

export type ToWorker =
  | WorkOrder
  /** In the next section, stand still at this place until told to go on. */
  | { readonly do: 'linger'; readonly where: Place }
  | { readonly do: 'go' }
  /** Keep the event loop busy. */
  | { readonly do: 'block'; readonly ms: number }
  /** No further section; then give everything back and end. */
  | { readonly do: 'finish' }

export type FromWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'event'; readonly event: HistoryEvent }
  | {
      readonly kind: 'note'
      readonly at: bigint
      readonly note: Omit<TimelineEvent, 'at' | 'client'>
      /** For how many milliseconds from then on the lease is good. */
      readonly remaining?: number
    }
  | { readonly kind: 'lingering'; readonly name: string }
  | { readonly kind: 'noise'; readonly message: string }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly message: string }
