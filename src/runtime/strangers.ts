import { INSPECT } from '../core/answers.ts'
import type { ClaimRef, NameInfo, Unknown } from '../core/contract.ts'
import type { Session } from './session.ts'

const MOST_TOLD = 10_000

/**
 * Claims of this session that only the store knows. A failover brings back what was true a second ago: claims that were
 * given up since hold the lock for a ttl, or are granted it for their patience, while everybody waits for nobody. An id is
 * never used again, so whatever is not known here can be given back.
 */
export class Strangers {
  private readonly session: Session
  /** Those that a message was about: once each, or a store that answers a withdrawal with a message would be asked without end. */
  private readonly told = new Set<string>()
  private names: string[] = []
  private looking = false

  constructor(session: Session) {
    this.session = session
  }

  /** The connection was away, and may lead to another server now: looks at the names that somebody here waits for. */
  look(names: Iterable<string>): void {
    this.names = [...names]
    if (!this.looking) this.next()
  }

  /** One after the other: there may be thousands. */
  private next(): void {
    this.looking = true
    // Not one inside of the other, where the store answers at once.
    let goOn = true
    while (goOn) {
      goOn = false
      const name = this.session.closed ? undefined : this.names.pop()
      if (name === undefined) return void (this.looking = false)
      this.inspect(name, (atOnce) => {
        if (atOnce) goOn = true
        else this.next()
      })
    }
  }

  private inspect(name: string, then: (atOnce: boolean) => void): void {
    const { session } = this
    session.ask<NameInfo | Unknown>(
      INSPECT,
      () => session.store.inspect(name, session.requestTimeout),
      (info, atOnce) => {
        if (!('kind' in info)) for (const { id } of info.holders) this.giveBack({ name, id })
        then(atOnce)
      },
    )
  }

  /** A message says that the claim was granted. */
  granted(claim: ClaimRef): void {
    if (this.told.has(claim.id) || !this.isStranger(claim)) return
    if (this.told.size >= MOST_TOLD) this.told.clear()
    this.told.add(claim.id)
    this.giveBack(claim)
  }

  /** Unless it is known here: then it is no stranger. */
  private giveBack({ name, id }: ClaimRef): void {
    const { session } = this
    if (!this.isStranger({ name, id })) return
    session.cleanup.remove({ name, id }, true, session.patience)
  }

  private isStranger({ name, id }: ClaimRef): boolean {
    return this.session.owns(id) && !this.session.knows(name, id)
  }
}
