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
  readonly calm?: boolean
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
 * `retryable: false` says that asking again cannot help (wrong password, unsupported server).
 */
export interface Unknown {
  readonly kind: 'unknown'
  readonly cause: unknown
  readonly retryable?: false
}

/** The claim is granted: `count` tokens from `token` on are its own, at least one. */
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
/** A waiter hears `queued`. Who asked for tokens and holds hears `held` with them, also if it was granted just now. */
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

  /** Frees what the store itself opened. A client that the user passed in stays open. */
  close(): MaybePromise<void>

  /** What makes it a full member of a quorum. Locks of its own and votes do not know of each other. */
  readonly votes?: Voter
}

export interface Watch {
  readonly kind: 'watching'
  stop(): void
}

/** One attempt at a claim. A number is used once: what is late from an earlier attempt is not taken for this one. */
export interface VoteRef extends ClaimRef {
  readonly attempt: number
}

/** Which attempt to give up, or 0 for any. */
export interface VoteRelease extends ReleaseRequest {
  readonly attempt: number
}

export interface VoteRequest extends VoteRef {
  readonly ttl: number
  readonly tokens: number
  readonly owner: string
  /** Milliseconds for which a store that has no memory of votes looks on before it votes. 0: it is known to be new. */
  readonly probation: number
  /** Tell the session when the name may have become free. */
  readonly interest: boolean
  /** Whether the vote still counts. What has not left by the time it does not must not leave: a release may be ahead of it. */
  wanted?(): boolean
}

/** `count` tokens from `token` on are set apart for the claim at this store. */
export interface Granted {
  readonly kind: 'granted'
  readonly token: bigint
  readonly count: number
  readonly contended: boolean
}

/** The store came back empty, or is new, and does not vote for so many milliseconds. */
export interface NotReady {
  readonly kind: 'not-ready'
  readonly readyIn: number
}

/** Somebody was granted the name after this claim was. */
export interface Fenced {
  readonly kind: 'fenced'
}

/** Nobody holds the name here, and nobody was granted it since. */
export interface Free {
  readonly kind: 'free'
}

/** Accept `count` tokens from `token` on, if everything that this claim rests on here is no later than `base`. */
export interface ConfirmRequest extends VoteRef {
  readonly base: bigint
  readonly token: bigint
  readonly count: number
}

export interface ExtendRequest extends VoteRef {
  readonly ttl: number
  readonly owner: string
  readonly probation: number
  /** The first and the last token of the block that a majority accepted last. */
  readonly token: bigint
  readonly top: bigint
  /** 0, or how many new ones to set apart. */
  readonly tokens: number
  /** `restore`: where nobody holds it and nobody was granted it since, hold it again. */
  readonly mode: 'keep' | 'restore'
}

export type VoteAnswer = Granted | Busy | NotReady | Unknown
export type ConfirmAnswer = { readonly kind: 'confirmed' } | Lost | Fenced | Unknown
export type ExtendAnswer = Renewed | Granted | Free | Fenced | Lost | NotReady | Unknown

/** Who holds a name at one store of a quorum. */
export interface VoteInfo extends VoteRef {
  readonly owner: string
  readonly token: bigint
  readonly expiresIn: number
}

/**
 * One store of a quorum. core/vote-cell.ts is the rule that it follows. As for stores: nothing throws, every request is
 * answered in its time. A vote that is granted after its time was up is given back by the voter itself.
 */
export interface Voter {
  vote(request: VoteRequest, timeout: number): MaybePromise<VoteAnswer>
  confirm(request: ConfirmRequest, timeout: number): MaybePromise<ConfirmAnswer>
  extend(requests: readonly ExtendRequest[], timeout: number): MaybePromise<readonly ExtendAnswer[]>
  /** `tell`: it was held, so whoever is interested is told. */
  release(ref: VoteRelease, tell: boolean, timeout: number): MaybePromise<ReleaseAnswer>
  /** As `Store.withdraw`: no attempt at this claim is granted any more. */
  withdraw(ref: ClaimRef, timeout: number): MaybePromise<ReleaseAnswer>
  watch(session: string, listener: StoreListener, timeout: number): MaybePromise<Watch | Unknown>
  inspect(name: string, timeout: number): MaybePromise<VoteInfo | Free | Unknown>
  /** A page of the names that are held here. Ends within half of its time, with a cursor if there is more to look at. */
  names(query: ListQuery, timeout: number): MaybePromise<ListPage | Unknown>
  /** In which of all servers this is, in words that differ exactly if the servers do; and when it can vote. */
  identify(
    probation: number,
    timeout: number,
  ): MaybePromise<{ readonly kind: 'node'; readonly server: string; readonly readyIn: number } | Unknown>
  /**
   * Calls back whenever it may lead to another server than the one that it said it was, and when that one can be asked.
   * What was asked before that and is answered after it is `unknown`. A voter without it is one server for ever.
   */
  onMove?(listener: (reachable: boolean) => void): void
}

/** A voter that tells its answers instead of promising them, once and maybe at once: a lock takes five of each. */
export interface DirectVoter extends Voter {
  voteThen(request: VoteRequest, timeout: number, heard: (answer: VoteAnswer) => void): void
  releaseThen(ref: VoteRelease, tell: boolean, timeout: number, heard: (answer: ReleaseAnswer) => void): void
}

/**
 * A voter that can prove that it has forgotten nothing. Where all stores of a quorum can, and none has voted for longer
 * than any lease lasts, nothing is held, and none of them has to look on first.
 */
export interface AccountableVoter extends Voter {
  /** Whether it can prove that it gave no vote in the last `probation` milliseconds. Changes nothing. */
  unused(
    probation: number,
    timeout: number,
  ): MaybePromise<{ readonly kind: 'unused'; readonly server: string } | { readonly kind: 'used' } | Unknown>
  /** Lets it vote at once if it is empty, still that server, and still unused; otherwise changes nothing. */
  begin(server: string, timeout: number): MaybePromise<{ readonly kind: 'begun' | 'used' } | Unknown>
}
