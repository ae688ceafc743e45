import { randomBytes } from 'node:crypto'

import type { ClaimAnswer, Store } from '../core/contract.ts'
import type { EmbeddedStore } from './embedded/store.ts'
import { Failure } from './failure.ts'
import { releaseOnce } from './leave-line.ts'
import type { Problems } from './problems.ts'

/** How old an answer may be: whoever asks more often costs nobody anything. */
const FRESH_MS = 2000
const TIMEOUT_MS = 2000
const PROBE = 'holdfast-ready'

export interface ReadinessParts {
  readonly store: Store
  /** The same, if it is the server's own. */
  readonly own: EmbeddedStore | null
  readonly problems: Problems
  readonly auditRequired: boolean
  /** Tries to write what the audit log lacks. */
  readonly retryAudit: () => void
}

/** Whether a lock would be granted now. Nobody may have asked for one for hours, so it is tried. */
export class Readiness {
  private readonly parts: ReadinessParts
  private looking: Promise<void> | null = null
  private lookedAt = -Infinity
  /** A claim was not answered since one was: the store may be one that can be read and not be written (a full disk, a replica). */
  private doubtful = false

  constructor(parts: ReadinessParts) {
    this.parts = parts
  }

  /** Null when it is ready. */
  async problem(): Promise<Failure | null> {
    if (performance.now() - this.lookedAt > FRESH_MS) {
      this.looking ??= this.look().finally(() => {
        this.looking = null
        this.lookedAt = performance.now()
      })
    }
    await this.looking
    return this.known()
  }

  /** A claim was not answered. That is logged also where nobody asks whether it is ready. */
  doubt(): void {
    this.doubtful = true
    this.problem().catch(() => undefined)
  }

  /** As far as it is known without trying. */
  known(): Failure | null {
    const { problems, auditRequired } = this.parts
    const words = problems.of('state') ?? problems.of('store')
    if (words !== undefined) return new Failure('STORE_UNAVAILABLE', `${words}.`, { retryAfter: 1 })
    const audit = auditRequired ? problems.of('audit') : undefined
    return audit === undefined ? null : new Failure('AUDIT_UNAVAILABLE', `${audit}.`, { retryAfter: 5 })
  }

  private async look(): Promise<void> {
    const { store, own, problems, retryAudit } = this.parts
    retryAudit()
    if (own !== null) return own.check()
    const { doubtful } = this
    try {
      const answer = await (doubtful ? this.claim() : store.inspect(PROBE, TIMEOUT_MS))
      const refused = 'kind' in answer && answer.kind === 'unknown'
      problems.note('store', refused ? answer.cause : null)
      if (doubtful && !refused) this.doubtful = false
    } catch (error) {
      problems.note('store', error)
    }
  }

  private async claim(): Promise<ClaimAnswer> {
    const { store } = this.parts
    const [session, id] = [randomBytes(16), randomBytes(16)].map((bytes) => bytes.toString('base64url'))
    const claim = { name: PROBE, id: `${session}.${id}` }
    const sizes = { weight: 1, capacity: 1, tokens: 1, ttl: TIMEOUT_MS, patience: TIMEOUT_MS }
    const answer = await store.claim(
      { ...claim, ...sizes, owner: 'lock server', whenBusy: 'try' },
      TIMEOUT_MS,
    )
    if (answer.kind === 'held') releaseOnce(store, claim, TIMEOUT_MS)
    return answer
  }
}
