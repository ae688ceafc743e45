import { sessionOf } from '../core/claim-queue.ts'
import type { MaybePromise, Store, StoreEvent, StoreListener, Unknown, Watch } from '../core/contract.ts'
import type { Book } from './book.ts'
import type { Caller } from './caller.ts'
import { Failure } from './failure.ts'
import type { Principal } from './rights.ts'

type Granted = Extract<StoreEvent, { readonly kind: 'granted' }>

interface Session {
  /** The name of the principal whose it is. */
  readonly owner: string
  /** It asks about its grants before anybody hears of them, and notes them then. */
  readonly confirms: boolean
  listener: StoreListener
  watch: Watch | null
}

/**
 * Who is told about which session's claims. The store is asked once per session: a client that comes back on a new
 * connection, before the old one is known to be dead, takes its place. Events name claims by their ids, and who knows
 * an id can release the claim: so a session is one principal's, as long as anybody listens for it or has a claim in it.
 */
export class Sessions {
  private readonly store: Store
  private readonly book: Book
  private readonly sessions = new Map<string, Session>()
  /** Asked about every other grant before anybody is told of it. */
  onGrant: (grant: Granted) => boolean = () => true

  constructor(store: Store, book: Book) {
    this.store = store
    this.book = book
  }

  watch(
    id: string,
    { principal, confirms = false }: Pick<Caller, 'principal'> & { readonly confirms?: boolean },
    listener: StoreListener,
    timeout: number,
  ): MaybePromise<Watch | Unknown> {
    this.assertOwn(principal, id)
    const known = this.sessions.get(id)
    if (known !== undefined && known.watch !== null) {
      known.listener = listener
      return { kind: 'watching', stop: () => this.stop(id, listener) }
    }
    const session: Session = { owner: principal.name, confirms, listener, watch: null }
    this.sessions.set(id, session)
    const answer = this.store.watch(id, (event) => this.deliver(id, event), timeout)
    return answer instanceof Promise
      ? answer.then((settled) => this.settle(id, session, settled))
      : this.settle(id, session, answer)
  }

  /** By names, not by tokens: one principal may have several, and gets new ones. */
  assertOwn({ name }: Principal, session: string): void {
    const owner = this.sessions.get(session)?.owner ?? this.book.ownerOf(session)
    if (owner !== undefined && owner !== name)
      throw new Failure('FORBIDDEN', 'This session is not of that token.')
  }

  /** Tells whoever made a claim, if they are connected here. */
  tell(claimId: string, event: StoreEvent): void {
    this.deliver(sessionOf(claimId), event)
  }

  close(): void {
    for (const { watch } of this.sessions.values()) watch?.stop()
    this.sessions.clear()
  }

  private settle(id: string, session: Session, answer: Watch | Unknown): Watch | Unknown {
    if (answer.kind === 'unknown') {
      if (this.sessions.get(id) === session) this.sessions.delete(id)
      return answer
    }
    session.watch = answer
    const { listener } = session
    // Nobody wants it any more: it was stopped, or replaced, while the store was asked.
    if (this.sessions.get(id) !== session) answer.stop()
    return { kind: 'watching', stop: () => this.stop(id, listener) }
  }

  private stop(id: string, listener: StoreListener): void {
    const session = this.sessions.get(id)
    if (session?.listener !== listener) return
    this.sessions.delete(id)
    session.watch?.stop()
  }

  private deliver(id: string, event: StoreEvent): void {
    const session = this.sessions.get(id)
    const noted = event.kind !== 'granted' || session?.confirms === true || this.onGrant(event)
    if (!noted) return
    this.book.told(event)
    session?.listener(event)
  }
}
