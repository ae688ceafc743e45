import { sessionOf } from '../core/claim-queue.ts'
import type { MaybePromise, Store, StoreEvent, StoreListener, Unknown, Watch } from '../core/contract.ts'
import { endWatch } from '../core/unheard.ts'
import type { ClaimRegistry } from './claim-registry.ts'
import type { Caller } from './caller.ts'
import { Failure } from './failure.ts'
import type { Limits } from './limits.ts'
import type { Principal } from './rights.ts'
import { when } from './when.ts'

type Granted = Extract<StoreEvent, { readonly kind: 'granted' }>

interface Session {
  /** The name of the principal whose it is. */
  owner: string
  /** Who listens. */
  caller: Caller
  /** Of which claims it asks about the grants before anybody hears of them, and notes them then. */
  readonly confirms: ((claimId: string) => boolean) | undefined
  listener: StoreListener
  /** How often this listener listens: requests that wait over HTTP share one. */
  times: number
  watch: Watch | null
  /** What the store was asked, until it has answered. */
  asked: Promise<Watch | Unknown> | null
}

const WATCHING: Watch = { kind: 'watching', stop: () => undefined }

/**
 * Who is told about which session's claims. The store is asked once per session: a client that comes back on a new
 * connection, before the old one is known to be dead, takes its place. Events name claims by their ids, and who knows
 * an id can release the claim: so a session is one principal's, as long as anybody listens for it or has a claim in it.
 */
export class Sessions {
  private readonly store: Store
  private readonly registry: ClaimRegistry
  private readonly most: number
  private readonly sessions = new Map<string, Session>()
  /** How many of them each principal has, by its name. */
  private readonly counts = new Map<string, number>()
  private readonly isGone: (principal: string) => boolean
  private stopping = false
  /** Asked about every other grant before anybody is told of it. */
  onGrant: (grant: Granted, listening: Caller | null) => boolean = () => true

  /** `isGone`: whether there is no principal of that name any more. */
  constructor(
    store: Store,
    registry: ClaimRegistry,
    { waitersPerPrincipal }: Pick<Limits, 'waitersPerPrincipal'>,
    isGone: (principal: string) => boolean = () => false,
  ) {
    this.isGone = isGone
    this.store = store
    this.registry = registry
    this.most = waitersPerPrincipal
  }

  watch(
    id: string,
    caller: Caller & { readonly confirms?: Session['confirms'] },
    listener: StoreListener,
    timeout: number,
  ): MaybePromise<Watch | Unknown> {
    const { principal, confirms } = caller
    this.assertOwn(principal, id)
    const known = this.sessions.get(id)
    // Either would lose its wake-ups to the other, and their grants are noted in different ways.
    if (known !== undefined && known.confirms !== confirms)
      throw new Failure('ID_IN_USE', 'This session is in use: a lease over HTTP needs one of its own.')
    if (known !== undefined) {
      known.times = known.listener === listener ? known.times + 1 : 1
      known.listener = listener
      known.caller = caller
      // The store is asked once: to stop one of two watches of a session may be to stop both.
      return when(known.asked ?? WATCHING, (answer) => this.standing(id, listener, answer))
    }
    if ((this.counts.get(principal.name) ?? 0) >= this.most)
      throw new Failure('TOO_MANY', 'There are too many sessions that somebody listens for.', {
        retryAfter: 5,
      })
    const session: Session = {
      owner: principal.name,
      caller,
      confirms,
      listener,
      times: 1,
      watch: null,
      asked: null,
    }
    this.sessions.set(id, session)
    this.count(principal.name, 1)
    const asked = when(
      this.store.watch(id, (event) => this.deliver(id, event), timeout),
      (answer) => this.settle(id, session, answer),
    )
    if (asked instanceof Promise) {
      session.asked = asked
      // What should be an answer may be thrown: the next one asks again.
      asked.catch(() => this.sessions.get(id) === session && this.forget(id))
    }
    return when(asked, (answer) => this.standing(id, listener, answer))
  }

  /** By names, not by tokens: one principal may have several, and gets new ones. */
  assertOwn({ name }: Principal, session: string): void {
    const owner = this.sessions.get(session)?.owner ?? this.registry.ownerOf(session)
    if (owner !== undefined && owner !== name)
      throw new Failure('FORBIDDEN', 'This session is not of that token.')
  }

  /**
   * A claim of this session was renewed by a principal that did not make it. If there is none of the maker's name any more,
   * for it has another one now, or the server has its first tokens file, then this is the same program, and goes on with
   * its session: nobody else knows its claims.
   */
  renewedBy({ name }: Principal, session: string): void {
    const owner = this.sessions.get(session)?.owner ?? this.registry.ownerOf(session)
    if (owner === undefined || owner === name || !this.isGone(owner)) return
    this.registry.passOn(session, name)
    const known = this.sessions.get(session)
    if (known === undefined) return
    this.count(known.owner, -1)
    known.owner = name
    this.count(name, 1)
  }

  /** Tells whoever made a claim, if they are connected here. */
  tell(claimId: string, event: StoreEvent): void {
    this.deliver(sessionOf(claimId), event)
  }

  /**
   * The server stops, and the next run goes on with the line: nobody is passed over from now on because its connection ended
   * before somebody else's. What it is granted it learns there.
   */
  keepPlaces(): void {
    this.stopping = true
  }

  close(): void {
    for (const { watch } of this.sessions.values()) if (watch) endWatch(watch)
    this.sessions.clear()
    this.counts.clear()
  }

  private settle(id: string, session: Session, answer: Watch | Unknown): Watch | Unknown {
    session.asked = null
    if (answer.kind === 'unknown') {
      if (this.sessions.get(id) === session) this.forget(id)
      return answer
    }
    session.watch = answer
    // The server has stopped while the store was asked.
    if (this.sessions.get(id) !== session) endWatch(answer)
    return answer
  }

  /** One listener's part of a watch. */
  private standing(id: string, listener: StoreListener, answer: Watch | Unknown): Watch | Unknown {
    return answer.kind === 'unknown' ? answer : { kind: 'watching', stop: () => this.stop(id, listener) }
  }

  private stop(id: string, listener: StoreListener): void {
    const session = this.sessions.get(id)
    if (this.stopping || session?.listener !== listener || --session.times > 0) return
    this.forget(id)
    if (session.watch) endWatch(session.watch)
  }

  private forget(id: string): void {
    const owner = this.sessions.get(id)?.owner
    if (owner === undefined) return
    this.sessions.delete(id)
    this.count(owner, -1)
  }

  private count(owner: string, by: 1 | -1): void {
    const count = (this.counts.get(owner) ?? 0) + by
    if (count <= 0) this.counts.delete(owner)
    else this.counts.set(owner, count)
  }

  private deliver(id: string, event: StoreEvent): void {
    const session = this.sessions.get(id)
    const noted =
      event.kind !== 'granted' ||
      session?.confirms?.(event.id) === true ||
      this.onGrant(event, session?.caller ?? null)
    if (!noted) return
    this.registry.told(event)
    session?.listener(event)
  }
}
