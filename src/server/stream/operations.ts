import type { ClaimInfo, MaybePromise, NameInfo, StoreListener, Unknown, Watch } from '../../core/contract.ts'
import {
  answerToWire,
  infoToWire,
  LONGEST_TIMEOUT,
  releaseToWire,
  RENEWALS_PER_LINE,
  unknownToWire,
} from '../../stores/holdfast/wire.ts'
import type { Spoken, Wire } from '../../stores/holdfast/wire.ts'
import type { RenewAnswer } from '../../core/contract.ts'
import type { Caller } from '../caller.ts'
import { Failure } from '../failure.ts'
import { claimRefOf, claimRequestOf, listQueryOf, nameOf, renewRequestOf } from '../fields.ts'
import { masked } from '../masked.ts'
import type { LockService } from '../service.ts'
import type { Sessions } from '../sessions.ts'
import { when } from '../when.ts'

const TIMEOUT_MS = { shortest: 1, longest: LONGEST_TIMEOUT }
export const SESSION: RegExp = /^[\w-]{1,64}$/
const DONE: Spoken = { kind: 'done' }
/** Sessions that one connection may listen for: a process rarely has more than one. */
const WATCHES = 1000

/** What came in place of an answer: a failure's own words, or none of a stranger's business. */
const STORE_SILENT = 'The store behind the lock server did not answer'

/** The operations of one connection, on the store's own terms: ids are the client's. */
export class Operations {
  private readonly service: LockService
  private readonly sessions: Sessions
  private readonly caller: Caller
  private readonly tell: (session: string) => StoreListener
  private readonly watches = new Map<string, Watch>()
  private closed = false

  constructor(
    { service, sessions }: { service: LockService; sessions: Sessions },
    caller: Caller,
    tell: (session: string) => StoreListener,
  ) {
    this.service = service
    this.sessions = sessions
    this.caller = caller
    this.tell = tell
  }

  /** Never throws and never rejects: what goes wrong is an answer. */
  run(operation: unknown, payload: unknown, timeout: unknown): MaybePromise<Spoken> {
    try {
      const answer = this.perform(operation, payload, timeoutOf(timeout))
      return answer instanceof Promise
        ? answer.catch((error: unknown) => this.refused(operation, error))
        : answer
    } catch (error) {
      return this.refused(operation, error)
    }
  }

  private refused(operation: unknown, error: unknown): Spoken {
    // Not made into text: what a stranger sent in its place may be an object that says no, or have no end.
    const what = typeof operation === 'string' ? operation : 'another operation'
    if (error instanceof Failure) this.service.refusals.note(this.caller, what, error)
    else this.service.noteFault(error, this.caller)
    return refusalOf(error)
  }

  close(): void {
    this.closed = true
    for (const watch of this.watches.values()) watch.stop()
    this.watches.clear()
  }

  private perform(operation: unknown, payload: unknown, timeout: number): MaybePromise<Spoken> {
    const { service, caller } = this
    const { limits } = service
    switch (operation) {
      case 'claim':
        return when(service.claim(caller, claimRequestOf(payload, limits), timeout), (answer) =>
          answerToWire(hushed(answer)),
        )
      case 'renew':
        return this.renew(payload, timeout)
      case 'release':
        return this.release(payload, timeout)
      case 'withdraw':
        return when(service.withdraw(caller, claimRefOf(payload, limits), timeout), (answer) =>
          answerToWire(hushed(answer)),
        )
      case 'downgrade':
        return when(service.downgrade(caller, claimRefOf(payload, limits), timeout), (answer) =>
          answerToWire(hushed(answer)),
        )
      case 'watch':
        return this.watch(sessionOf(payload), timeout)
      case 'unwatch':
        return this.unwatch(sessionOf(payload))
      case 'inspect': {
        const name = nameOf(payload, limits)
        return when(service.inspect(caller, name, timeout), (info) =>
          'kind' in info ? unknownToWire(hushed(info)) : infoToWire(this.masked(info)),
        )
      }
      case 'list':
        return when(service.list(caller, listQueryOf(payload), timeout), (page) =>
          'kind' in page ? unknownToWire(hushed(page)) : page,
        )
      case 'ping':
        return DONE
      default:
        throw new Failure('INVALID_ARGUMENT', 'This lock server does not know that operation.')
    }
  }

  private renew(payload: unknown, timeout: number): MaybePromise<Spoken> {
    const { service, caller } = this
    if (!Array.isArray(payload) || payload.length > RENEWALS_PER_LINE) {
      throw new Failure('INVALID_ARGUMENT', `renewals come in lists of at most ${RENEWALS_PER_LINE}`)
    }
    // A ttl that was allowed before the server had other limits is not the fault of those beside it.
    const wishes = payload.map((one) => orFailure(() => renewRequestOf(one, service.limits)))
    return when(service.renew(caller, wishes, timeout), (answers) =>
      answers.map((answer) => answerToWire(hushed(answer)) as Wire<RenewAnswer>),
    )
  }

  private release(payload: unknown, timeout: number): MaybePromise<Spoken> {
    const { service, caller } = this
    const claim = claimRefOf(payload, service.limits)
    const { next: wished } = payload as { next?: unknown }
    const next = wished === undefined ? undefined : claimRequestOf(wished, service.limits)
    return when(service.release(caller, claim, next, timeout), ({ released, next: position }) =>
      releaseToWire(
        position === undefined
          ? { released: hushed(released) }
          : { released: hushed(released), next: hushed(position) },
      ),
    )
  }

  private watch(session: string, timeout: number): MaybePromise<Spoken> {
    if (this.watches.size >= WATCHES)
      throw new Failure('TOO_MANY', 'One connection listens for too many sessions.')
    return when(this.sessions.watch(session, this.caller, this.tell(session), timeout), (answer) => {
      if (answer.kind === 'unknown') return unknownToWire(hushed(answer))
      this.watches.get(session)?.stop()
      this.watches.set(session, answer)
      if (this.closed) this.close()
      return DONE
    })
  }

  private unwatch(session: string): Spoken {
    this.watches.get(session)?.stop()
    this.watches.delete(session)
    return DONE
  }

  /** Ids as they are only for who made them, and for administrators, who can break any lock anyway. */
  private masked({ name, capacity, holders, waiters }: NameInfo): NameInfo {
    if (this.caller.principal.may('admin', name)) return { name, capacity, holders, waiters }
    const mask = (claim: ClaimInfo): ClaimInfo =>
      this.service.registry.madeBy({ name, id: claim.id }, this.caller)
        ? claim
        : { ...claim, id: masked(claim.id) }
    return { name, capacity, holders: holders.map(mask), waiters: waiters.map(mask) }
  }
}

function orFailure<T>(read: () => T): T | Failure {
  try {
    return read()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

function sessionOf(payload: unknown): string {
  if (typeof payload === 'string' && SESSION.test(payload)) return payload
  throw new Failure('INVALID_ARGUMENT', 'a session is named by up to 64 letters, digits, - and _')
}

function timeoutOf(value: unknown): number {
  const { shortest, longest } = TIMEOUT_MS
  return typeof value === 'number' && value >= shortest && value <= longest ? value : longest
}

/** A driver's own words may name hosts and users. */
function hushed<A extends { readonly kind: string }>(answer: A | Unknown): A | Unknown {
  if (answer.kind !== 'unknown' || !('cause' in answer)) return answer
  const { cause } = answer
  return { ...answer, cause: cause instanceof Failure ? cause.message : STORE_SILENT }
}

/** Asking again helps where the server, not the asker, has to change. */
const PASSING = new Set([
  'STARTING',
  'STOPPING',
  'STORE_UNAVAILABLE',
  'AUDIT_UNAVAILABLE',
  'TOO_MANY',
  'RATE_LIMITED',
])

function refusalOf(error: unknown): Spoken {
  if (!(error instanceof Failure)) return { kind: 'unknown', cause: STORE_SILENT }
  const { code, message } = error
  return PASSING.has(code)
    ? { kind: 'unknown', cause: message, code }
    : { kind: 'unknown', cause: message, code, retryable: false }
}
