import type { Capabilities, MaybePromise, Store } from '../core/contract.ts'
import type { Env } from '../runtime/env.ts'
import type { FaultProxy, Upstream } from './fault-proxy.ts'
import type { StoreModule } from './taker-protocol.ts'

/**
 * What a case asks of its target. A target that does not have it is told "not applicable", never "passed"; for
 * capabilities that a user can ask for in vain there is an opposite case, which needs their absence.
 */
export type Need =
  /** Waiters stand in a queue at the store. */
  | 'queue'
  | 'no queue'
  /** Readers. */
  | 'shared'
  | 'no shared'
  /** A writer can become a reader. */
  | 'downgrade'
  | 'no downgrade'
  /** Semaphores. */
  | 'permits'
  | 'no permits'
  /** The store tells waiters. */
  | 'push'
  /** Tokens never go back. */
  | 'monotonic tokens'
  /** Several processes can share the store, and the target says how a child process opens it. */
  | 'processes'
  /** The target lets its connections be led through a fault proxy. */
  | 'proxy'
  /** The target can restart its server. */
  | 'restart'

/** One thing that every store must do, or that every lock above it must do. */
export interface Case {
  /** Stable, `<group>/<what>`. */
  readonly id: string
  /** A sentence about behaviour. */
  readonly title: string
  readonly needs: readonly Need[]
  /** Rejects when the behaviour is another one. */
  run(ctx: CaseContext): Promise<void>
}

/** What decides which cases apply to a store. */
export interface Abilities extends Pick<
  Capabilities,
  'queue' | 'shared' | 'permits' | 'wakeups' | 'fencing' | 'reach'
> {
  /** The store has `downgrade`, and readers. */
  readonly downgrade: boolean
}

/** What is put to the test: one backend, and how to reach it. */
export interface Target {
  readonly name: string
  /** A new client of the same backend at every call. */
  createStore(): MaybePromise<Store>
  /** Everything the backend still stores for locks and their waiters, in words. What outlives them on purpose is left out. */
  leftovers?(): MaybePromise<readonly string[]>
  /** How late the store may be with a wake-up or with forgetting what has run out. Default 1000 ms. */
  readonly grace?: number
  /** Clocks and timers. Default: the system's. With a virtual one, somebody has to drive it: see `runCase`. */
  readonly env?: Env
  /** How another process opens the same backend. */
  module?(): MaybePromise<StoreModule>
  /** How to reach the backend through a proxy. */
  readonly proxied?: ProxiedTarget
  /** Stops the server and starts it again. */
  restart?(): Promise<void>
  /**
   * What the store is known to do, so that cases for other stores are not even collected. The cases fail if it is not true. Default: the store
   * is asked, and what does not apply is reported as skipped.
   */
  readonly abilities?: Abilities
  /** Cases that this store does not pass by design, and why. */
  readonly exceptions?: Readonly<Record<string, string>>
}

export interface ProxiedTarget {
  upstream(): MaybePromise<Upstream>
  createStore(address: { readonly host: string; readonly port: number }): MaybePromise<Store>
}

/** What a case works with. Everything it opens here is closed after it, whether it passed or not. */
export interface CaseContext {
  readonly capabilities: Capabilities
  readonly env: Env
  readonly grace: number
  createStore(): Promise<Store>
  /** A client whose connections go through the proxy. */
  createProxied(): Promise<{ readonly store: Store; readonly proxy: FaultProxy }>
  restart(): Promise<void>
  module(): Promise<StoreModule>
  leftovers(): Promise<readonly string[]>
  sleep(ms: number): Promise<void>
  /** A name that no other case and no other run uses. */
  name(label?: string): string
  /** `ms`, or the shortest ttl that the store takes, whichever is longer. */
  ttl(ms: number): number
  /** Waits until the check gives something other than undefined or false; fails after `within` ms. */
  eventually<T>(what: string, check: () => MaybePromise<T | undefined | false>, within?: number): Promise<T>
  /** Runs after the case, in reverse order. */
  cleanup(undo: () => MaybePromise<unknown>): void
}
