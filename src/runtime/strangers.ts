import { INSPECT } from '../core/answers.ts'
import type { ClaimInfo, NameInfo, StoreEvent, Unknown } from '../core/contract.ts'
import { Deadline } from './deadlines.ts'
import type { Session } from './session.ts'

/** How long a release that is under way may take. */
const UNDER_WAY_MS = 200

/**
 * Claims of this session that only the store knows. A failover brings back what was true a second ago: claims that were
 * given up since hold the lock for a ttl, or are granted it for their patience, while everybody waits for nobody. An id is
 * never used again, so whatever is not known here can be given back.
 */
export class Strangers extends Deadline {
  private readonly session: Session
  /** To be looked at now, and after a pause. */
  private readonly names = new Set<string>()
  private readonly later = new Set<string>()
  /** Those that were seen once, by name. */
  private readonly suspects = new Map<string, ReadonlySet<string>>()
  private looking = false

  constructor(session: Session) {
    super()
    this.session = session
  }

  /** The connection was away, and may lead to another server now: looks at the names that somebody here waits for. */
  look(names: Iterable<string>): void {
    for (const name of names) this.names.add(name)
    if (!this.looking) this.next()
  }

  /** A grant was told, perhaps for a claim that nobody here knows any more. */
  told({ name, id }: Extract<StoreEvent, { kind: 'granted' }>): void {
    if (this.isStranger(name, id)) this.lookLater(name)
  }

  due(): void {
    const names = [...this.later]
    this.later.clear()
    this.look(names)
  }

  /** One after the other: there may be thousands. */
  private next(): void {
    const { session } = this
    const [name] = session.closed ? [] : this.names
    this.looking = name !== undefined
    if (name === undefined) return
    this.names.delete(name)
    session.ask<NameInfo | Unknown>(
      INSPECT,
      () => session.store.inspect(name, session.requestTimeout),
      (info) => {
        this.seen(name, 'kind' in info ? [] : info.holders)
        this.next()
      },
    )
  }

  /**
   * One that was given up a moment ago looks the same, and its release is under way: to withdraw it ahead of that would make the
   * release say that the lease was lost. So only who is seen twice is a stranger.
   */
  private seen(name: string, holders: readonly ClaimInfo[]): void {
    const { cleanup, patience } = this.session
    const before = this.suspects.get(name)
    const ids = holders.map(({ id }) => id).filter((id) => this.isStranger(name, id))
    const fresh = ids.filter((id) => before?.has(id) !== true)
    for (const id of ids) if (!fresh.includes(id)) cleanup.remove({ name, id }, true, patience)
    this.suspects.delete(name)
    if (fresh.length === 0) return
    this.suspects.set(name, new Set(fresh))
    this.lookLater(name)
  }

  private lookLater(name: string): void {
    const { session } = this
    this.later.add(name)
    const pause = Math.min(UNDER_WAY_MS, session.patience / 3)
    session.expiries.set(this, session.clock.now() + pause, Math.ceil(pause))
  }

  private isStranger(name: string, id: string): boolean {
    const { session } = this
    return session.owns(id) && !session.knows(name, id)
  }
}
