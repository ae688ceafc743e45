import { CAPABILITIES } from '../../core/capabilities.ts'
import type { Capabilities, Guarantee, Guarantees } from '../../core/contract.ts'
import type { HistoryEvent } from '../../testkit/history.ts'
import type { At, FaultRecord, TimelineEvent, ViolationRecord } from '../record.ts'
import type { RegisterLog } from '../resource/protocol.ts'
import type { NemesisFacts } from './nemesis.ts'

/** A lock that clients of a run use, and how. */
export interface LabName {
  readonly name: string
  readonly kind: 'mutex' | 'read-write' | 'semaphore'
  /** Of a semaphore. */
  readonly capacity?: number
  /** Nobody uses it but those who are told to hold it at the same time. */
  readonly meeting?: true
}

/** What a run was made with: everything that has to be known to judge it. */
export interface Settings {
  readonly ttl: number
  /** Milliseconds by which the store may keep a grant for longer than its ttl. */
  readonly lateExpiry: number
  readonly names: readonly LabName[]
  readonly nemeses: readonly NemesisFacts[]
  readonly capabilities: Capabilities
  /** Absent: grants have fencing tokens. */
  readonly tokens?: false
}

/** One client process, from its start to its end. */
export interface ClientRecord {
  readonly label: string
  readonly startedAt: At
  /** `planned`: the lab ended it. */
  readonly exit?: { readonly at: At; readonly how: string; readonly planned: boolean }
  /** It was told to give everything back. `to`: it had. */
  readonly closing?: { readonly from: At; readonly to?: At; readonly error?: string }
}

/** The code of a call that was answered late. */
export const LATE = 'LATE'

/** The call of a wait that was over so soon that the store may not have answered it. */
export const SHORT_WAIT = 'a short wait'

/** A call of a client that ended with an error that it had not asked for. */
export interface ErrorRecord {
  readonly client: string
  readonly call: string
  readonly from: bigint
  readonly at: bigint
  /** The stable code of an error of holdfast's; absent: another kind of error. */
  readonly code?: string
  readonly message: string
}

/** A try that was told that the lock is not free. */
export interface Refusal {
  readonly client: string
  readonly name: string
  readonly weight: number
  readonly capacity: number
  readonly from: bigint
  readonly at: bigint
}

/** One look at a name from outside: who is there, without the ids of their claims. */
export interface Look {
  readonly name: string
  /** When the store was asked, and when it answered. */
  readonly from: bigint
  readonly to: bigint
  readonly holders: readonly string[]
  readonly waiters: readonly string[]
  /** Those of the holders that have all of it, where a lock is for readers and writers. Absent in what was written down before. */
  readonly writers?: readonly string[]
}

/** A time in which a process was given no processor. */
export interface Stall {
  readonly from: At
  readonly to: At
  /** Which process. Absent where it was written down before that was. */
  readonly of?: string
}

/** Everything that was seen of a run. Verdicts follow from it alone, so that anybody can judge again. */
export interface Evidence {
  readonly format: 1
  readonly settings: Settings
  /** The moment 0 of everything that is in milliseconds, on the clock of the history. */
  readonly began: bigint
  readonly healedAt: At
  readonly endedAt: At
  readonly history: readonly HistoryEvent[]
  /** Renewals, and leases at risk: for the picture. */
  readonly notes: readonly TimelineEvent[]
  readonly faults: readonly FaultRecord[]
  /** Faults that found nothing to strike, or did not last. */
  readonly missed: readonly { readonly kind: string; readonly why: string }[]
  readonly clients: readonly ClientRecord[]
  readonly errors: readonly ErrorRecord[]
  /** Absent where it was written down before refusals were. */
  readonly refusals?: readonly Refusal[]
  readonly noise: readonly string[]
  readonly looks: readonly Look[]
  readonly registers: readonly RegisterLog[]
  /** What the store still had when all leases must have ended. */
  readonly remains: readonly string[]
  /** What the lab waited for in vain. */
  readonly stuck: readonly ViolationRecord[]
  /** When the lab's own process, or a client, stood still without using a processor: the machine was busy. */
  readonly stalls: readonly Stall[]
}

/** Every list that a judge reads. */
const LISTS = [
  'history',
  'notes',
  'faults',
  'missed',
  'clients',
  'errors',
  'noise',
  'looks',
  'registers',
  'remains',
  'stuck',
  'stalls',
] as const satisfies readonly (keyof Evidence)[]

const GUARANTEES: readonly Guarantee[] = ['holds', 'fenced', 'breaks', 'n/a']
const ROWS: readonly (keyof Guarantees)[] = [
  'holderCrash',
  'holderPause',
  'partition',
  'storeRestart',
  'failover',
  'storeClockJump',
]

/** Whether something that was read from a file can be judged. */
export function isEvidence(evidence: Partial<Evidence>): boolean {
  const { format, settings } = evidence
  const { names, nemeses, capabilities, ttl, lateExpiry } = settings ?? {}
  return (
    format === 1 &&
    [ttl, lateExpiry, evidence.healedAt, evidence.endedAt].every((time) => typeof time === 'number') &&
    /^\d+$/.test(String(evidence.began)) &&
    isStore(capabilities) &&
    [names, nemeses, ...LISTS.map((list) => evidence[list])].every((list) => Array.isArray(list))
  )
}

/** A table of guarantees without a row would let anything break under that fault. */
function isStore(capabilities: Partial<Capabilities> | null | undefined): boolean {
  const { guarantees, ...others } = capabilities ?? {}
  const known = Object.entries(CAPABILITIES).filter(([key]) => key !== 'guarantees')
  return (
    known.every(([key, good]) => good(others[key as keyof typeof others])) &&
    ROWS.every((row) => GUARANTEES.includes(guarantees?.[row] as Guarantee))
  )
}

const BIGINTS: ReadonlySet<string> = new Set(['at', 'from', 'to', 'token', 'validUntil', 'began'])

/** Records as text. Stamps are larger than what JSON's numbers can hold, and are written as text. */
export function toJson(records: unknown): string {
  const plain = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? value.toString() : value)
  return `${JSON.stringify(records, plain)}\n`
}

/** So many of a long list at once. In a short one each may be large: a record is. */
const PIECE = { of: 100, items: 10_000 }

/** What `toJson` gives, in pieces: of a run of half an hour it is longer than a text may be. */
export function* jsonPieces(value: unknown): Generator<string> {
  yield* piecesOf(value)
  yield '\n'
}

function* piecesOf(value: unknown): Generator<string> {
  if (Array.isArray(value)) {
    yield '['
    const step = value.length > PIECE.of ? PIECE.items : 1
    for (let at = 0; at < value.length; at += step) {
      if (at > 0) yield ','
      if (step === 1) yield* piecesOf(value[at])
      else yield toJson(value.slice(at, at + step)).slice(1, -2)
    }
    yield ']'
  } else if (typeof value === 'object' && value !== null) {
    yield '{'
    const known = Object.entries(value).filter(([, one]) => one !== undefined && typeof one !== 'function')
    for (const [index, [key, one]] of known.entries()) {
      yield `${index === 0 ? '' : ','}${JSON.stringify(key)}:`
      yield* piecesOf(one)
    }
    yield '}'
  } else yield toJson(value ?? null).slice(0, -1)
}

/** Evidence as it was before it was written down. */
export function revive(evidence: Evidence): Evidence {
  const stamp = (key: string, value: unknown): unknown =>
    BIGINTS.has(key) && typeof value === 'string' && /^-?\d+$/.test(value) ? BigInt(value) : value
  return JSON.parse(JSON.stringify(evidence), stamp) as Evidence
}
