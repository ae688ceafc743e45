/**
 * The words, and the contract that every store keeps.
 *
 * - **name**: what is locked. A string of up to 512 bytes.
 * - **capacity**: how much weight a name carries at once. Mutex 1, semaphore n, read-write lock `ALL`.
 * - **claim**: one process's request for some **weight** of a name. It is *held*, *queued*, or gone.
 * - **holder**: a claim that has been granted. **waiter**: a claim in the queue.
 * - **ttl**: how long the store keeps a grant that nobody renews.
 * - **patience**: how long the store keeps a waiter that says nothing, and how long a grant that was
 *   pushed to a waiter lasts until the waiter picks it up with its first renewal.
 * - **token**: the fencing number of a grant. Grows with every grant of a name.
 * - **validity**: how long the *client* may believe in a grant. Always shorter than the store's ttl.
 * - **lease**: what a user's task gets: a claim's validity and a token of its own.
 * - **turn**: the time for which one process keeps a claim and hands it from task to task.
 * - **session**: one client's life. Claims are named `<session>.<number>`, so a store knows whom to tell.
 * - **vote**: what one store of a quorum says to a claim. **attempt**: one round of votes, with a number of its own.
 */

import type { Voter } from './votes.ts'

export type * from './votes.ts'

/** The capacity of a read-write lock: a writer weighs as much, a reader 1. */
export const ALL: number = 2 ** 31 - 1

export type MaybePromise<T> = T | Promise<T>

/** Which claim: its name and its secret id, `<session>.<number>`. Whoever knows the id can release it. */
export interface ClaimRef {
  readonly name: string
  readonly id: string
}

/** Which claim to give up. */
export interface ReleaseRequest extends ClaimRef {
  /**
   * By the caller's clock the lease has not ended, and nobody was seen behind it. A store may then take a shorter way,
   * and need not look at the time again: if the claim is still there, nobody had the name since.
   */
  readonly uncontended?: boolean
}

export interface ClaimRequest extends ClaimRef {
  /** How much of the capacity the claim takes: 1 … capacity. */
  readonly weight: number
  /** Every claim on a name must give the same capacity; another one is answered with `mismatch`. */
  readonly capacity: number
  /** Milliseconds. */
  readonly ttl: number
  /** Milliseconds; see the glossary. */
  readonly patience: number
  /** How many tokens to reserve: a process that hands its grant from task to task gives each its own. */
  readonly tokens: number
  /** `queue`: wait in line when it cannot be granted. `try`: answer `busy`. */
  readonly whenBusy: 'queue' | 'try'
  /** Who asks, in words for people (host, process). Shown by `inspect`. Never a secret. */
  readonly owner: string
}

export interface RenewRequest extends ClaimRef {
  readonly ttl: number
  readonly patience: number
  /** 0: the tokens of the grant suffice. More: reserve a new block of as many. */
  readonly tokens: number
}

/**
 * The request may or may not have happened. Never a reason to believe more than before.
 * `retryable: false` says that asking again cannot help (wrong password, unsupported server). `scope: 'name'` says that it is
 * about this name alone: what the store keeps of it cannot be read, and other names may well be asked for.
 */
export interface Unknown {
  readonly kind: 'unknown'
  readonly cause: unknown
  readonly retryable?: false
  readonly scope?: 'name'
}

/**
 * The claim is granted: `count` tokens from `token` on are its own, at least one. It lasts for the request's ttl from when the store saw
 * that request, also if the claim was granted before: whoever asked counts from its sending.
 */
export interface Held {
  readonly kind: 'held'
  readonly token: bigint
  readonly count: number
  /** Somebody stands in the queue behind it. */
  readonly contended: boolean
}

/**
 * The claim stands in the queue. `retryAfter`: milliseconds until a holder's ttl could end, if known. A holder that crashed
 * releases nothing, so whoever waits asks again then.
 */
export interface Queued {
  readonly kind: 'queued'
  readonly retryAfter?: number
}

/** Not granted, not queued. `retryAfter`: milliseconds until a holder's ttl could end, if known. */
export interface Busy {
  readonly kind: 'busy'
  readonly retryAfter?: number
  /** Another one after the lock has changed hands; says nothing else. Where it moves, whoever waits asks more often. */
  readonly mark?: string
}

/** Another capacity is in use for this name. Nothing was changed. */
export interface Mismatch {
  readonly kind: 'mismatch'
  readonly capacity: number
}

/** The store has no such claim (any more). */
export interface Lost {
  readonly kind: 'lost'
}

/**
 * Renewed: the grant now lasts `ttl` from the moment the store saw the request.
 * The token stays what it was unless a new block was asked for.
 */
export interface Renewed {
  readonly kind: 'renewed'
  readonly contended: boolean
}

export interface Released {
  readonly kind: 'released'
}

export interface NotHeld {
  readonly kind: 'not-held'
}

/** A writer's claim is a reader's from now on. */
export interface Downgraded {
  readonly kind: 'downgraded'
}

export type ClaimAnswer = Held | Queued | Busy | Mismatch | Unknown
/**
 * A waiter hears `queued`, or `held` with the tokens that it asked for if it was granted by now. A holder that asked for tokens hears `held` with
 * them, or `renewed` if there are none for it: then it is renewed, and its turn is over.
 */
export type RenewAnswer = Renewed | Held | Queued | Lost | Unknown
export type ReleaseAnswer = Released | NotHeld | Unknown
/** `lost`: the claim is not held (any more). */
export type DowngradeAnswer = Downgraded | Lost | Unknown

/** What a release did and, when it queued again in the same step, where the new claim stands. */
export interface ReleaseResult {
  readonly released: ReleaseAnswer
  /** Present exactly when `next` was asked for. */
  readonly next?: ClaimAnswer
}

/** What a store tells a session without being asked. Any of it may get lost. */
export type StoreEvent =
  /** A queued claim was granted, for its patience or its ttl, whichever is shorter: renew it at once. */
  | {
      readonly kind: 'granted'
      readonly name: string
      readonly id: string
      readonly token: bigint
      readonly count: number
      readonly contended: boolean
    }
  /** A queue formed behind a claim that the session holds. */
  | { readonly kind: 'contended'; readonly name: string; readonly id: string }
  /** A claim of the session was taken away (force-release). */
  | { readonly kind: 'revoked'; readonly name: string; readonly id: string }
  /** For stores without a queue: a name may have become free. */
  | { readonly kind: 'freed'; readonly name: string }
  /** Events may have been missed (a reconnect): ask about everything that waits. */
  | { readonly kind: 'gap' }

export type StoreListener = (event: StoreEvent) => void

/** One claim as `inspect` shows it. */
export interface ClaimInfo {
  /** The claim's id. Secret: layers above never show it to people or over a network. */
  readonly id: string
  readonly owner: string
  readonly weight: number
  /** Holders only. */
  readonly token?: bigint
  /** Milliseconds until the store forgets the claim unless it is renewed. */
  readonly expiresIn: number
}

export interface NameInfo {
  readonly name: string
  readonly capacity: number
  readonly holders: readonly ClaimInfo[]
  /** In the order in which they will be granted. */
  readonly waiters: readonly ClaimInfo[]
}

export interface ListQuery {
  readonly prefix?: string | undefined
  /** At most this many names. Default 100. */
  readonly limit?: number | undefined
  /** From a former page. */
  readonly cursor?: string | undefined
}

export interface ListPage {
  /** Names that are held or waited for. */
  readonly names: readonly string[]
  readonly cursor?: string
}

/** What still holds under a fault: always, never, or only as far as the resource checks tokens. */
export type Guarantee = 'holds' | 'fenced' | 'breaks' | 'n/a'

/** Mutual exclusion of belief under each fault. `fenced`: only a resource that checks tokens is safe. */
export interface Guarantees {
  readonly holderCrash: Guarantee
  readonly holderPause: Guarantee
  readonly partition: Guarantee
  readonly storeRestart: Guarantee
  readonly failover: Guarantee
  readonly storeClockJump: Guarantee
}

export interface Capabilities {
  /** Waiters stand in a FIFO queue at the store. Otherwise the runtime asks again and again. */
  readonly queue: boolean
  /** Claims that weigh less than the capacity can be held at once by readers (`ALL`). */
  readonly shared: boolean
  /** Semaphores. */
  readonly permits: boolean
  /** `monotonic`: tokens never go back. `weak`: they may, if the store loses its memory. */
  readonly fencing: 'monotonic' | 'weak'
  /** `push`: the store tells waiters. `poll`: they have to ask. */
  readonly wakeups: 'push' | 'poll'
  /** Who can share it: tasks of one process, processes of one machine, machines. */
  readonly reach: 'process' | 'machine' | 'network'
  /** Milliseconds. Shorter or longer ttls are refused before the store is asked. */
  readonly minTtl: number
  readonly maxTtl: number
  /** Milliseconds by which the store may forget a grant early; taken off the validity. */
  readonly earlyExpiry: number
  /** Milliseconds by which the store may keep a grant for longer than its ttl when nothing is wrong. Default: none that matter. */
  readonly lateExpiry?: number | undefined
  /** After a crash the store grants nothing to anybody until the longest claim that was out is over. Default: it does not. */
  readonly waitsAfterCrash?: boolean | undefined
  readonly guarantees: Guarantees
}

/**
 * A store: mechanism only. One attempt per call, no retries, no policy.
 * It never throws and never rejects for anything that can happen at run time: it answers `unknown`.
 * Answers may be given synchronously; `timeout` is how long the caller will wait for one, and a request
 * that could not be sent within that time must not be sent later.
 * Repeating a request with the same id is harmless: the second answer tells the state that the first made.
 */
export interface Store {
  /** For messages: `redis`, `memory` … */
  readonly kind: string
  readonly capabilities: Capabilities
  /**
   * What the store tells comes the way that its answers come, so that listening costs nothing. Then whoever asks listens from the
   * beginning, and a holder hears at once that its lock was taken away. Elsewhere a connection is opened when somebody waits.
   */
  readonly listeningIsFree?: boolean
  /**
   * Whether a claim protects something that comes to its end at the store itself and cannot be stopped any more: a COMMIT that is
   * under way. Then it is not handed on inside of the process. It is given up, and the store lets the next one in when that is over.
   */
  guards?(claimId: string): boolean

  claim(request: ClaimRequest, timeout: number): MaybePromise<ClaimAnswer>

  /** Many at once, holders and waiters mixed; answers in the same order. Also the waiters' sign of life. */
  renew(requests: readonly RenewRequest[], timeout: number): MaybePromise<readonly RenewAnswer[]>

  /**
   * Gives a claim up, held or queued, and grants whoever is next. With `next`, queues a new claim of the same
   * process behind the others in the same step: a turn that ends while tasks still wait costs one request.
   */
  release(claim: ReleaseRequest, next: ClaimRequest | undefined, timeout: number): MaybePromise<ReleaseResult>

  /**
   * Removes a claim whose fate is unknown and makes sure that a copy of its request that is still under way
   * (in a dead connection's buffer) finds nothing to do. Dearer than `release`; only for clean-up.
   */
  withdraw(claim: ClaimRef, timeout: number): MaybePromise<ReleaseAnswer>

  /**
   * A writer becomes a reader, and no other writer comes in between: the held claim (of capacity `ALL`) weighs 1 from now on,
   * and readers that this lets in are granted. It keeps its id, its tokens and its end: the lease is not prolonged.
   * A store that cannot do this in one step leaves it out.
   */
  readonly downgrade?: ((claim: ClaimRef, timeout: number) => MaybePromise<DowngradeAnswer>) | undefined

  /**
   * Sends the session's events to the listener from the moment the promise resolves. Called once per session,
   * before its first claim that may queue. Resolves with the function that ends it.
   */
  watch(session: string, listener: StoreListener, timeout: number): MaybePromise<Watch | Unknown>

  /** One name, or a page of names. Both ask the authority, never a replica. */
  inspect(name: string, timeout: number): MaybePromise<NameInfo | Unknown>
  list(query: ListQuery, timeout: number): MaybePromise<ListPage | Unknown>

  /**
   * Frees what the store itself opened. A client that the user passed in stays open. What is held stays so until it runs out, or its
   * session hears that it was revoked: whoever was closed with `release: false` believes in it.
   */
  close(): MaybePromise<void>

  /** What makes it a full member of a quorum. Locks of its own and votes do not know of each other. */
  readonly votes?: Voter
}

export interface Watch {
  readonly kind: 'watching'
  stop(): void
}
