import type {
  Busy,
  ClaimRef,
  ListPage,
  ListQuery,
  Lost,
  MaybePromise,
  ReleaseAnswer,
  ReleaseRequest,
  Renewed,
  StoreListener,
  Unknown,
  Watch,
} from './contract.ts'

/** The contract that every store of a quorum keeps, in the words of contract.ts. */

/**
 * One attempt at a claim. A number is used once, by one client: what is late from an earlier attempt is not taken for this one. All
 * attempts of a client have the same number of times 2^32 in it: a claim may be asked for by two.
 */
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
 * answered in its time. A vote that is granted after its time was up is given back by the voter itself, and one that was released
 * or withdrawn meanwhile is not sent any more.
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
  /** Why it takes no new votes though it answers (its memory is full, it is a replica); `undefined` if it does. */
  probe?(timeout: number): MaybePromise<Unknown | undefined>
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
