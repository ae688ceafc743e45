import type { StoreOptions } from '../../open.ts'
import type { HistoryEvent } from '../../testkit/history.ts'
import type { TimelineEvent } from '../record.ts'
import type { ErrorRecord, LabName, Refusal } from './evidence.ts'

/** Another library than this one, or a broken one: a module that Node can import, and which of its exports opens it. */
export interface Library {
  readonly url: string
  readonly export: string
}

/** How a lock is asked for. */
export type Manner = 'wait' | 'try' | 'give up' | 'time out' | 'nested'

export const MANNERS: readonly [Manner, ...Manner[]] = ['wait', 'try', 'give up', 'time out', 'nested']

/** What a client of the lab is told by the process that started it. The store's address comes this way, never as an argument. */
export interface WorkOrder {
  readonly do: 'begin'
  readonly label: string
  readonly url: string
  readonly credentials?: StoreOptions
  readonly library?: Library
  /** Those that its library has. */
  readonly manners: readonly [Manner, ...Manner[]]
  readonly names: readonly [LabName, ...LabName[]]
  readonly ttl: number
  readonly requestTimeout: number
  readonly patience: number
  readonly resourcePort: number
  /** The longest rest between two sections: where nobody stands in line, who never rests leaves nothing to the others. */
  readonly restMs: number
  readonly seed: number
}

/** Before it looks whether the lease still holds, or between that look and the write, where nothing but a token helps. */
export type Place = 'before the check' | 'after the check' | 'among others'

/** Those who are to hold a lock together, and the one who comes when it is full. A writer may be the first, and go on as a reader. */
export interface Meeting {
  readonly do: 'meet'
  readonly at: LabName
  readonly as: 'one of them' | 'a writer first' | 'one too many'
  /** How one too many asks. */
  readonly manner?: Manner
  /** How many permits each asks for. Absent: one. */
  readonly permits?: number
}

export type ToWorker =
  | WorkOrder
  /** In the next section, stand still at this place until told to go on. */
  | { readonly do: 'linger'; readonly where: Place }
  | { readonly do: 'go' }
  /** The next section is to last so long: beyond the ttl, so that its lease has to be renewed. */
  | { readonly do: 'long'; readonly kind: LabName['kind']; readonly ms: number }
  /** Take this lock next, beside others who do, and have it until told to go on. */
  | Meeting
  /** Keep the event loop busy. */
  | { readonly do: 'block'; readonly ms: number }
  /** No further section; then give everything back and end. */
  | { readonly do: 'finish' }

export type FromWorker =
  /** `companion`: the process that does its work. */
  | { readonly kind: 'ready'; readonly companion?: number }
  | { readonly kind: 'event'; readonly event: HistoryEvent }
  | {
      readonly kind: 'note'
      readonly at: bigint
      readonly note: Omit<TimelineEvent, 'at' | 'client'>
      /** For how many milliseconds from then on the lease is good. */
      readonly remaining?: number
    }
  | { readonly kind: 'lingering'; readonly name: string }
  /** It has asked for every lock in every way. */
  | { readonly kind: 'asked for everything' }
  /** A section that was to be long is over. */
  | { readonly kind: 'long' }
  /** It stood still without using a processor: the machine had none for it. */
  | { readonly kind: 'stall'; readonly from: bigint; readonly to: bigint }
  | { readonly kind: 'noise'; readonly message: string }
  | { readonly kind: 'error'; readonly error: Omit<ErrorRecord, 'client'> }
  /** A try was refused. */
  | { readonly kind: 'refused'; readonly refusal: Omit<Refusal, 'client'> }
  /** It has given everything back; `error`: closing failed. */
  | { readonly kind: 'done'; readonly error?: string }
  /** It could not begin. */
  | { readonly kind: 'failed'; readonly message: string }
  /** Its process has ended. */
  | { readonly kind: 'gone' }
