import { REQUEST_TIMEOUT_MS, SILENT_MS } from '../bounds.ts'
import { isNested, rootOf } from '../context.ts'
import type { Call, Finding, ProgramCheck, Trace, Wanted } from '../trace.ts'

/** How late a timer may be, and how long one request and its answer take. */
const TIMER_MS = 2
const REQUEST_MS = 25
/** A set that is aborted waits so long at the most until what it had is given back. */
const GIVE_BACK_MS = 50
/** How long the runtime may wait before it asks again a store that did not answer. */
const LONGEST_PAUSE_MS = 1000

/** What each call and each close may end with, and when. */
export function promises(
  trace: Trace,
  calm: boolean,
  broken: boolean,
  mute: boolean = false,
): readonly Finding[] {
  const judge = new Judge(trace, calm, broken, mute)
  return [...trace.calls.flatMap((call) => judge.call(call)), ...judge.afterClose()]
}

class Judge {
  private readonly trace: Trace
  private readonly calm: boolean
  /** The store may do anything. */
  private readonly broken: boolean
  /** How long a request takes that is given up, or has its answer. */
  private readonly request: number

  constructor(trace: Trace, calm: boolean, broken: boolean, mute: boolean) {
    this.trace = trace
    this.calm = calm
    this.broken = broken
    this.request = mute ? SILENT_MS : calm ? REQUEST_MS : 2 * REQUEST_TIMEOUT_MS
  }

  call(call: Call): readonly Finding[] {
    return [...this.nesting(call), ...this.inTime(call), ...this.aborted(call), ...this.errors(call)]
  }

  /** Nobody gets a lock from a Holdfast that is being closed. */
  afterClose(): readonly Finding[] {
    return this.trace.grants.flatMap((grant) => {
      const closed = this.trace.closeOf(grant.process)
      if (closed === undefined || grant.from <= closed.from) return []
      const shares = grant.inside !== undefined
      if (shares) return []
      return finding(
        'close',
        `p${grant.process} got "${grant.name}" at ${grant.from}, after close() at ${closed.from}`,
      )
    })
  }

  /** Inside a section of its own name a call is answered at once: by a share of the lease, or by an error. */
  private nesting(call: Call): readonly Finding[] {
    const [want] = call.wants
    if (call.wants.length > 1 || want === undefined || want.nesting === 'none') return []
    if (mayHaveChanged(call, want)) return []
    const { process, to, from, end, error } = call
    if (!isNested(call, want)) return []
    // Nobody wants it any more.
    if (error === 'LOCK_ABORTED') return []
    if ((this.trace.closeOf(process)?.from ?? Infinity) <= from) return []
    const where = `inside a section of its own, p${process} asked for "${want.name}" (${want.mode}) at ${from}`
    if (to === undefined || to > from) return finding('nesting', `${where} and waited until ${to}`)
    if (error === 'CAPACITY_MISMATCH' && this.isMixedUp(want)) return []
    if (want.nesting === 'refused' && error !== 'LOCK_REENTRY')
      return finding('nesting', `${where} and heard ${error ?? end} instead of LOCK_REENTRY`)
    if (want.nesting === 'refused') return []
    const share = this.trace.grants.find((grant) => grant.call === call)
    if (share?.token === want.inside?.token) return []
    return finding(
      'nesting',
      `${where} and got ${share?.token ?? error ?? end} instead of a share of its own`,
    )
  }

  private inTime(call: Call): readonly Finding[] {
    const { process, from, wait = 0, wants, how } = call
    const asks = call.wait === undefined || wants.length > 1
    const longest = wait + (asks ? this.request * wants.length : 0) + TIMER_MS
    const took = (call.to ?? this.trace.endedAt) - from
    if (took <= longest) return []
    const names = wants.map(({ name }) => name).join(', ')
    return finding('settles', `${how} of ${names} in p${process} took ${took} ms, of ${longest} at the most`)
  }

  /** Who is told that nobody wants it any more asks and waits no longer. Of several locks, those that it has are given back first. */
  private aborted({ abortedAt = Infinity, to, wants, how, process, end }: Call): readonly Finding[] {
    const longest = wants.length > 1 ? GIVE_BACK_MS : 0
    if ((to ?? this.trace.endedAt) <= abortedAt + longest + TIMER_MS) return []
    const names = wants.map(({ name }) => name).join(', ')
    const what = `${how} of ${names} in p${process} was aborted at ${abortedAt}`
    return finding('settles', `${what}, and ${end ?? 'open'} at ${to ?? 'the end'}`)
  }

  private errors(call: Call): readonly Finding[] {
    const { error, process, to = 0, wants } = call
    if (error === undefined || this.isExcused(call, error)) return []
    const names = wants.map(({ name }) => name).join(', ')
    return finding('errors', `p${process} heard ${error} of "${names}" at ${to}, and had no reason to`)
  }

  private isExcused(call: Call, error: string): boolean {
    const { process, from, to = 0, wait, wants, abortedAt } = call
    const closed = this.trace.closeOf(process)
    switch (error) {
      case 'LOCK_TIMEOUT':
        return wait === undefined || (to - from >= wait - 1 && !this.neverAnswered(call))
      case 'LOCK_ABORTED':
        return abortedAt !== undefined && abortedAt <= to
      case 'CLOSED':
        return closed !== undefined && closed.from <= to
      case 'LOCK_REENTRY':
        return wants.some((want) => want.nesting === 'refused' || mayHaveChanged(call, want))
      case 'LOCK_LOST':
        return wants.length > 1 && !this.staysHeld(call)
      case 'STORE_UNAVAILABLE':
        return this.broken || this.wasSilent(process, from, to)
      case 'STORE_BROKEN':
        return this.broken
      case 'CAPACITY_MISMATCH':
        return wants.some((want) => this.isMixedUp(want))
      default:
        return false
    }
  }

  /** The first of several may run out while the last one is waited for: where nobody renews it, or a renewal may get lost. */
  private staysHeld({ wants, process }: Call): boolean {
    if (!this.calm || this.broken || this.trace.closeOf(process) !== undefined) return false
    return wants.every(({ name, renewed, nesting }) => {
      return renewed && nesting === 'none' && !this.trace.wasForced(name)
    })
  }

  /** It was the first of its process to ask for the name, and heard not a word. */
  private neverAnswered(call: Call): boolean {
    const { process, from, to = 0, wants, set } = call
    const [want] = wants
    if (want === undefined || wants.length > 1 || set) return false
    const others = this.trace.calls.filter(
      (other) =>
        other !== call && other.process === process && other.wants.some(({ name }) => name === want.name),
    )
    // What one of them was told, all know.
    if (others.some((other) => other.from <= to)) return false
    const asked = this.trace.requests.filter(
      (one) => one.process === process && one.to >= from && one.from <= to,
    )
    return asked.length > 0 && asked.every((one) => one.lost || one.to > to)
  }

  /** Others think that the name has another capacity. */
  private isMixedUp({ name, capacity }: Wanted): boolean {
    return this.trace.calls.some(({ wants }) =>
      wants.some((other) => other.name === name && other.capacity !== capacity),
    )
  }

  /** A store was asked and did not answer: not at all, or not in the time that was left; and it has not been asked again since. */
  private wasSilent(process: number, from: number, to: number): boolean {
    return this.trace.requests.some((request) => {
      if (request.process !== process) return false
      const open = request.from <= to && request.to >= to
      const given = REQUEST_TIMEOUT_MS + LONGEST_PAUSE_MS
      return open || (request.lost && request.to >= from - given && request.to <= to)
    })
  }
}

/** A set asks a moment after the call: what it was to share may have been downgraded or given back by then. */
function mayHaveChanged({ set, to = Infinity }: Call, { nesting, inside }: Wanted): boolean {
  if (!set || nesting !== 'shares' || inside === undefined) return false
  return [inside, rootOf(inside)].some(
    (one) => (one.readsFrom ?? Infinity) <= to || (one.to ?? Infinity) <= to,
  )
}

function finding(check: ProgramCheck, message: string): readonly Finding[] {
  return [{ check, message }]
}
