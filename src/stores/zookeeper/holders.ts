import type { Claim } from './claim.ts'
import { clearTimeout, now, setTimeout } from './client/time.ts'

/** A section that is over by then costs nothing but its two writes. */
const ATTEND_AFTER_MS = 5

/** The store's clock for its claims: ends those whose time is up, and has holders look after their nodes after a moment. */
export class Holders {
  private readonly all: () => Iterable<Claim>
  private readonly expired: (claim: Claim) => void
  private sweeping: ReturnType<typeof setTimeout> | undefined
  private sweepAt = Infinity
  private attending: ReturnType<typeof setTimeout> | undefined
  /** In the order of their grants. */
  private fresh: { readonly claim: Claim; readonly since: number }[] = []

  constructor(all: () => Iterable<Claim>, expired: (claim: Claim) => void) {
    this.all = all
    this.expired = expired
  }

  /** A claim was granted. */
  add(claim: Claim): void {
    this.expect(claim.until)
    this.fresh.push({ claim, since: now() })
    if (this.attending === undefined) this.attendIn(ATTEND_AFTER_MS)
  }

  /** A claim ends then, unless something is heard of it. */
  expect(until: number): void {
    if (until >= this.sweepAt) return
    clearTimeout(this.sweeping)
    this.sweepAt = until
    this.sweeping = setTimeout(() => this.sweep(), Math.max(1, Math.ceil(until - now())))
    this.sweeping.unref()
  }

  stop(): void {
    clearTimeout(this.sweeping)
    clearTimeout(this.attending)
    this.fresh = []
  }

  /** Most were heard of since this moment was chosen, so one look at all of them lasts for a good part of a ttl. */
  private sweep(): void {
    this.sweepAt = Infinity
    const time = now()
    let next = Infinity
    for (const claim of this.all()) {
      // With a request under way it is somebody's still; its end is set when that is answered.
      if (claim.state === 'leaving' || claim.entering !== null) continue
      if (claim.until <= time) this.expired(claim)
      else next = Math.min(next, claim.until)
    }
    if (next !== Infinity) this.expect(next)
  }

  private attendIn(ms: number): void {
    this.attending = setTimeout(() => this.attend(), ms)
    this.attending.unref()
  }

  private attend(): void {
    this.attending = undefined
    const time = now() - ATTEND_AFTER_MS
    let index = 0
    for (; index < this.fresh.length; index++) {
      const { claim, since } = this.fresh[index] as { claim: Claim; since: number }
      if (since > time) break
      if (claim.state === 'held') claim.attend()
    }
    this.fresh.splice(0, index)
    if (this.fresh.length > 0) this.attendIn(ATTEND_AFTER_MS)
  }
}
