import { INSPECT } from '../core/answers.ts'
import type { NameInfo, StoreEvent, Unknown } from '../core/contract.ts'
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
  private readonly names = new Set<string>()
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

  /**
   * A grant was told. If nobody here knows the claim, it was given up: a moment ago, and its release is under way, or before a
   * failover. Only a look, later, tells which.
   */
  told({ name, id }: Extract<StoreEvent, { kind: 'granted' }>): void {
    const { session } = this
    if (!this.isStranger(name, id)) return
    this.names.add(name)
    const pause = Math.min(UNDER_WAY_MS, session.patience / 3)
    session.expiries.set(this, session.clock.now() + pause, Math.ceil(pause))
  }

  due(): void {
    if (!this.looking) this.next()
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
        const holders = 'kind' in info ? [] : info.holders
        for (const { id } of holders)
          if (this.isStranger(name, id)) session.cleanup.remove({ name, id }, true, session.patience)
        this.next()
      },
    )
  }

  private isStranger(name: string, id: string): boolean {
    const { session } = this
    return session.owns(id) && !session.knows(name, id)
  }
}
