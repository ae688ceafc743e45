import type { ErrorCode } from '../core/errors.ts'
import type { HoldfastOptions } from '../locks/options.ts'
import type { HistoryEvent } from './history.ts'

/** How a process opens the store under test: a module that Node can import, and which of its exports makes the store. */
export interface StoreModule {
  /** `file:` or a package name. Not TypeScript: Node 20 cannot read it. */
  readonly url: string
  /** A function from `args` to a store, or a promise of one. */
  readonly export: string
  readonly args: unknown
}

export interface TakeOptions {
  readonly ttl?: number | undefined
  readonly wait?: number | undefined
  /** `false`: the lease is not renewed. */
  readonly renew?: boolean | undefined
}

/** What a taker knows about its lease at the moment it is asked. */
export interface TakerState {
  readonly held: boolean
  readonly aborted: boolean
  readonly remaining: number
}

/** What a Holdfast in another process can be told. Functions stay at home. */
export type TakerOptions = Pick<
  HoldfastOptions,
  'ttl' | 'wait' | 'fair' | 'turn' | 'patience' | 'requestTimeout' | 'owner'
>

export type TakerCommand =
  | {
      readonly do: 'open'
      readonly module: StoreModule
      readonly options: TakerOptions
      readonly label: string
    }
  | { readonly do: 'acquire'; readonly name: string; readonly options: TakeOptions }
  | { readonly do: 'release' }
  | { readonly do: 'state' }
  /** Keeps the event loop busy, then answers with the state as the first code after the block sees it. */
  | { readonly do: 'block'; readonly ms: number }
  | { readonly do: 'close' }

export interface TakerRequest {
  readonly id: number
  readonly command: TakerCommand
}

export type TakerMessage =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: { readonly message: string; readonly code?: ErrorCode } }
  | { readonly event: HistoryEvent }
