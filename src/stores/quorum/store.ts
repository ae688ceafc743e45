import { checkOptions } from '../../core/arguments.ts'
import { printable } from '../../core/printing.ts'
import { sessionOf } from '../../core/claim-queue.ts'
import type {
  Capabilities,
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  ListPage,
  ListQuery,
  MaybePromise,
  NameInfo,
  ReleaseAnswer,
  ReleaseRequest,
  ReleaseResult,
  RenewAnswer,
  RenewRequest,
  Store,
  StoreListener,
  Unknown,
  Watch,
} from '../../core/contract.ts'
import { UnsupportedError } from '../../core/errors.ts'
import { unknown, unknownForGood } from '../../core/unknown.ts'
import { ATTEMPTS } from '../../core/vote-cell.ts'
import { Attempt } from './claim.ts'
import { capabilitiesOf } from './capabilities.ts'
import { isLate, noQuorum, stateOf } from './failure.ts'
import { Grants } from './grants.ts'
import { leave } from './release.ts'
import type { Tell } from './release.ts'
import { inspect, list } from './inspect.ts'
import { Membership } from './membership.ts'
import { Node } from './node.ts'
import { checkNodes, QUORUM_OPTIONS, settingsOf } from './options.ts'
import type { QuorumOptions } from './options.ts'
import { OrdinaryNode } from './ordinary-node.ts'
import { Quorum } from './quorum.ts'
import { renewAll } from './renew.ts'
import { Watching } from './watch.ts'

/** How long a store may take to say which server it is. */
const IDENTIFY_MS = 1000
/** For how long too few that are there are asked again: the first time they make a connection, too, and look for the quorum's beginning. */
const REACH_MS = 5000

/** So many clients can be told apart by the numbers of their attempts. */
const CLIENTS = 2 ** 21

const NO_TIME = unknown(
  new Error('the same claim was being asked for, and no time was left when that was over'),
)

/** Locks that a majority of independent stores agrees on. core/vote-cell.ts has the rule, and why it is enough. */
export class QuorumStore implements Store {
  readonly kind = 'quorum'
  readonly capabilities: Capabilities
  private readonly stores: readonly Store[]
  private readonly quorum: Quorum
  private readonly membership: Membership
  private readonly grants: Grants
  private readonly watching: Watching
  /** Attempts whose outcome is not known yet, by claim. */
  private readonly underWay = new Map<string, Promise<unknown>>()
  /**
   * Two clients may ask for one claim: a program that moved from one lock server to the next, and the server that it left. What the one
   * gives back must not be what the other was granted. Nor what this one was, and a majority has lost: as long as it may be believed in,
   * the stores that still have it keep others out. So from then on this is another client.
   */
  private attempts = firstOfClient()

  constructor(stores: readonly Store[], options: QuorumOptions) {
    checkNodes(stores)
    const settings = settingsOf(stores, options)
    this.stores = stores
    this.capabilities = capabilitiesOf(stores, settings.maxTtl)
    const nodes = stores.map((store, at) => {
      const label = settings.labels[at] ?? store.kind
      return new Node(store.votes ?? new OrdinaryNode(store, label), label, at, settings.clock)
    })
    this.quorum = new Quorum(nodes, settings)
    this.grants = new Grants(
      settings.clock,
      () => (this.attempts = firstOfClient() + (this.attempts % ATTEMPTS)),
    )
    this.membership = new Membership(this.quorum, IDENTIFY_MS)
    this.watching = new Watching(this.quorum)
  }

  claim(request: ClaimRequest, timeout: number): MaybePromise<ClaimAnswer> {
    if (request.capacity !== 1) return unsupported()
    const refused = this.membership.check()
    if (!(refused instanceof Promise)) return refused ?? this.attempt(request, timeout)
    return refused.then((problem) => problem ?? this.attempt(request, timeout))
  }

  renew(requests: readonly RenewRequest[], timeout: number): MaybePromise<readonly RenewAnswer[]> {
    const known = this.membership.check()
    if (!(known instanceof Promise)) return renewAll(this.quorum, this.grants, requests, timeout)
    return this.atMost(known, timeout / 2).then(() =>
      renewAll(this.quorum, this.grants, requests, timeout / 2),
    )
  }

  release(
    { name, id, uncontended = false }: ReleaseRequest,
    next: ClaimRequest | undefined,
    timeout: number,
  ): MaybePromise<ReleaseResult> {
    const own = this.grants.get(id)
    const ref = { name, id, attempt: own?.attempt ?? 0, uncontended }
    this.grants.delete(id)
    const tell: Tell = (node, heard) => node.release(ref, timeout, heard)
    if (next === undefined) return leave(this.quorum, tell, asResult, own === undefined)
    return this.thenClaim(leave(this.quorum, tell, asIs), next, timeout)
  }

  withdraw({ name, id }: ClaimRef, timeout: number): MaybePromise<ReleaseAnswer> {
    this.grants.delete(id)
    const tell: Tell = (node, heard) =>
      node.ask<ReleaseAnswer>((voter) => voter.withdraw({ name, id }, timeout), true, heard)
    return leave(this.quorum, tell, asIs)
  }

  watch(session: string, listener: StoreListener, timeout: number): Promise<Watch | Unknown> {
    return this.watching.watch(session, listener, timeout)
  }

  inspect(name: string, timeout: number): Promise<NameInfo | Unknown> {
    return inspect(this.quorum, name, timeout)
  }

  list(query: ListQuery, timeout: number): Promise<ListPage | Unknown> {
    return list(this.quorum, query, timeout)
  }

  /** Nothing, or why no lock can be had: too few servers, too few different ones, or too few that take any. */
  async reach(): Promise<Unknown | undefined> {
    const { nodes, majority, settings } = this.quorum
    const until = settings.clock.now() + REACH_MS
    for (;;) {
      const refusal = await this.membership.checkAll()
      if (refusal !== undefined) return refusal
      const states = await Promise.all(nodes.map(stateNow))
      if (states.filter(({ kind }) => kind === 'well').length >= majority) return undefined
      if (this.quorum.short && states.some(isLate) && settings.clock.now() < until) continue
      return noQuorum(
        nodes.map(({ label }, at) => stateOf(label, states[at])),
        majority,
      )
    }
  }

  async close(): Promise<void> {
    this.watching.close()
    await Promise.all(this.stores.map(async (store) => store.close()))
  }

  private atMost(done: Promise<unknown>, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const stopTimer = this.quorum.settings.clock.setTimer(resolve, ms)
      const over = (): void => {
        stopTimer()
        resolve()
      }
      done.then(over, over)
    })
  }

  /** A claim that is held already is renewed and keeps its tokens; any other is voted on anew. */
  private attempt(request: ClaimRequest, timeout: number): MaybePromise<ClaimAnswer> {
    const earlier = this.underWay.get(request.id)
    if (earlier !== undefined) return this.attemptAfter(earlier, request, timeout)
    return this.grants.get(request.id) === undefined
      ? this.voteOn(request, timeout)
      : this.claimAgain(request, timeout)
  }

  /** Its votes would take the place of those of the one before, and be given back with them if they were too few. */
  private async attemptAfter(
    earlier: Promise<unknown>,
    request: ClaimRequest,
    timeout: number,
  ): Promise<ClaimAnswer> {
    const { clock } = this.quorum.settings
    const until = clock.now() + timeout
    await earlier
    const left = until - clock.now()
    return left > 0 ? this.attempt(request, left) : NO_TIME
  }

  private async claimAgain(request: ClaimRequest, timeout: number): Promise<ClaimAnswer> {
    const [answer] = await renewAll(this.quorum, this.grants, [{ ...request, tokens: 0 }], timeout / 2)
    const grant = this.grants.get(request.id)
    if (grant === undefined) return this.attempt(request, timeout / 2)
    if (answer?.kind === 'unknown') return answer
    const { token, count } = grant
    return { kind: 'held', token, count, contended: answer?.kind === 'renewed' && answer.contended }
  }

  private voteOn(request: ClaimRequest, timeout: number): MaybePromise<ClaimAnswer> {
    const { watching, quorum, underWay } = this
    const { id } = request
    const over = (): void => void underWay.delete(id)
    const answer = new Attempt(quorum, this.grants, request, {
      attempt: ++this.attempts,
      interest: watching.any && watching.has(sessionOf(id)),
      // The votes, and then, if the stores disagree, a round in which they do agree.
      timeout: Math.min(quorum.settings.timeoutFor(request.ttl), timeout / 2),
      over,
    }).run()
    if (answer instanceof Promise) underWay.set(id, answer)
    return answer
  }

  private async thenClaim(
    released: MaybePromise<ReleaseAnswer>,
    next: ClaimRequest,
    timeout: number,
  ): Promise<ReleaseResult> {
    const answer = await released
    return { released: answer, next: await this.claim(next, timeout) }
  }
}

/** Of one that has not said which server it is, the last that it said; of the others, whether they take votes. */
async function stateNow({ server, state, voter }: Node): Promise<{ readonly kind: string }> {
  if (server !== null) return (await voter.probe?.(IDENTIFY_MS)) ?? { kind: 'well' }
  return state.kind === 'well' ? { kind: 'unchecked' } : state
}

const firstOfClient = (): number => Math.floor(Math.random() * CLIENTS) * ATTEMPTS
const asResult = (released: ReleaseAnswer): ReleaseResult => ({ released })
const asIs = (released: ReleaseAnswer): ReleaseAnswer => released

function unsupported(): Unknown {
  const message =
    'A quorum of stores has no semaphores and no read-write locks: each store alone would keep the limit, and all together would not. Use the redis store, on one server, a Sentinel group or a Cluster.'
  return unknownForGood(new UnsupportedError(message, { store: 'quorum' }))
}

/** Locks on several independent stores, of which a majority has to agree. Closing it closes them too. */
export function quorumStore(stores: readonly Store[], options: QuorumOptions = {}): Store {
  checkOptions(options, QUORUM_OPTIONS, 'maxTtl')
  return new QuorumStore(stores, options)
}

// Not its client, its password or the ids of claims.
printable(QuorumStore, 'Store', ({ kind }) => ({ kind }))
