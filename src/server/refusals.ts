import type { Audit } from './audit.ts'
import type { Caller } from './caller.ts'
import { REFUSALS } from './failure.ts'
import type { Failure } from './failure.ts'
import type { Counter, Metrics } from './metrics.ts'
import { networkOf } from './network.ts'
import type { Problems } from './problems.ts'
import { RateLimit } from './rate.ts'
import { NOBODY } from './rights.ts'

/** Lines a second for one principal at one address, in the audit log and in the log. */
const LINES = 10
/** The same for all of them together. */
const ALL_LINES = 100

export interface RefusalParts {
  readonly metrics: Metrics
  readonly audit: Audit
  readonly problems: Problems
}

/** What was refused, and to whom. Lines for a few of them a second: a stranger must not be able to fill the disk. */
export class Refusals {
  private readonly audit: Audit
  private readonly problems: Problems
  private readonly counter: Counter
  private readonly lines = new RateLimit(LINES)
  private readonly auditLines = new RateLimit(ALL_LINES)
  private readonly logLines = new RateLimit(ALL_LINES)
  /** Refusals without a line since the last one. */
  private leftOut = 0

  constructor({ metrics, audit, problems }: RefusalParts) {
    this.audit = audit
    this.problems = problems
    this.counter = metrics.counter('holdfast_refusals_total', 'Requests that were refused, by why.')
  }

  note(caller: Caller, what: string, { code, message }: Failure): void {
    if (!REFUSALS.has(code)) return
    this.counter.add('code', code)
    const { principal, remote, request } = caller
    if (this.lines.take(`${principal.name}|${networkOf(remote)}`) > 0) return void this.leftOut++
    // Of strangers all together, who may come from as many addresses as they like: they must not hide what others did.
    if (this.auditLines.take(principal === NOBODY ? 'strangers' : 'others') > 0) return void this.leftOut++
    if (this.audit.on) this.record(caller, what, code)
    // What the server itself lacks was said when it began.
    if (code === 'AUDIT_UNAVAILABLE' || this.logLines.take('') > 0) return
    this.problems.say('warn', 'refused', message, { request, who: principal.name, remote, what, code })
  }

  private record(caller: Caller, what: string, code: string): void {
    const { leftOut } = this
    this.leftOut = 0
    if (leftOut > 0) this.audit.recordOwn('refusals', { result: 'left out', count: leftOut })
    this.audit.record(caller, what, { result: `refused: ${code}` })
  }
}
