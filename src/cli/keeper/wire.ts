import type { LockWish } from '../lock-option.ts'
import type { StoreAddress } from '../store-option.ts'
import type { ProcessId } from './script-process.ts'

/** What `acquire` tells its keeper, on stdin: one line of JSON. Then COMMIT when the answer has been passed on. */
export interface Order {
  readonly address: StoreAddress
  /** `wait` may be Infinity, which JSON cannot say: null. */
  readonly wish: Omit<LockWish, 'wait'> & { readonly wait: number | null }
  /** The lock is kept as long as this process lives. */
  readonly script: ProcessId
  readonly lease: string
}

export const COMMIT = 'keep'

/** What the keeper says on stdout: a line of JSON. Before it, another one if the store is not there and is waited for. */
export type Report =
  | { readonly kind: 'held'; readonly name: string; readonly token: string; readonly expires: number }
  | { readonly kind: 'failed'; readonly message: string; readonly exitCode: number }

export interface Unreached {
  readonly kind: 'unreached'
  readonly message: string
}

/** What may be asked of a keeper on its socket: one word a connection, answered with one line of JSON. */
export type Question = 'release' | 'status'

export interface Status {
  readonly name: string
  readonly token: string
  readonly held: boolean
  /** Milliseconds of Unix time. */
  readonly expires: number
}

/** `lost`: it had ended before. `unknown`: the store did not answer; it runs out by itself. */
export interface ReleaseReport {
  readonly outcome: 'released' | 'lost' | 'unknown'
}
