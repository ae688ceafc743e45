import { inQuotes } from '../core/answers.ts'
import { CAPABILITIES } from '../core/capabilities.ts'
import type { Capabilities, RenewRequest } from '../core/contract.ts'

/** What is wrong with what a store answered, in words that go on after the method's name; null if nothing is. */

type Fields = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null

const NOTHING: Fields = {}

const METHODS = ['claim', 'renew', 'release', 'withdraw', 'watch', 'inspect', 'list', 'close'] as const

export function storeFault(store: unknown): string | null {
  if (!isObject(store)) return `is no store but ${show(store)}`
  if (typeof store['kind'] !== 'string') return 'has no kind: a word for messages'
  for (const method of METHODS) {
    if (typeof store[method] !== 'function') return `has no method ${method}()`
  }
  const { downgrade, guards, capabilities } = store
  if (downgrade !== undefined && typeof downgrade !== 'function') return 'has a downgrade that is no method'
  if (guards !== undefined && typeof guards !== 'function') return 'has guards that is no method'
  if (!isObject(capabilities)) return 'has no capabilities'
  for (const [name, fits] of Object.entries(CAPABILITIES)) {
    if (!fits(capabilities[name])) return `has ${show(capabilities[name])} as capabilities.${name}`
  }
  return null
}

/** `mayQueue`: it was to wait, now or when it was sent before. */
export function claimFault(answer: unknown, { queue }: Capabilities, mayQueue: boolean): string | null {
  const fault = kindFault(answer, ['held', 'queued', 'busy', 'mismatch', 'unknown'])
  if (fault !== null) return fault
  const { kind, capacity, retryAfter } = answer as Fields
  if (kind === 'queued' && !queue) return `answered 'queued', and capabilities.queue is false`
  if (kind === 'queued' && !mayQueue)
    return `answered 'queued' to a claim that was not to wait (whenBusy: 'try')`
  if (kind === 'mismatch' && typeof capacity !== 'number') return `answered 'mismatch' without the capacity`
  if ((kind === 'busy' || kind === 'queued') && retryAfter !== undefined && !isTime(retryAfter)) {
    return `answered '${kind}' with ${show(retryAfter)} as retryAfter`
  }
  return kind === 'held' ? grantFault(answer as Fields) : null
}

export function renewFault(answers: unknown, requests: readonly RenewRequest[]): string | null {
  if (!Array.isArray(answers))
    return `must answer with an array, one answer for each request; got ${show(answers)}`
  if (answers.length !== requests.length) {
    return `answered ${answers.length} of ${requests.length} requests; each has its answer, in the same order`
  }
  for (const answer of answers as readonly unknown[]) {
    const fault = kindFault(answer, ['renewed', 'held', 'queued', 'lost', 'unknown'])
    if (fault !== null) return fault
    const fields = answer as Fields
    const wrong = fields['kind'] === 'held' ? grantFault(fields) : contendedFault(fields)
    if (wrong !== null) return wrong
  }
  return null
}

export function resultFault(result: unknown): string | null {
  if (isObject(result) && 'released' in result) return releaseFault(result['released'])
  return `must answer { released: { kind } }, with next when it was asked for; got ${show(result)}`
}

/** It was to queue again in the same step. */
export function nextFault(result: unknown, capabilities: Capabilities, mayQueue: boolean): string | null {
  const fault = resultFault(result)
  if (fault !== null) return fault
  const { next } = result as Fields
  if (next === undefined) return 'was to queue again in the same step, and answered nothing about that'
  return claimFault(next, capabilities, mayQueue)
}

export function releaseFault(answer: unknown): string | null {
  return kindFault(answer, ['released', 'not-held', 'unknown'])
}

export function downgradeFault(answer: unknown): string | null {
  return kindFault(answer, ['downgraded', 'lost', 'unknown'])
}

export function guardsFault(answer: unknown): string | null {
  return typeof answer === 'boolean' ? null : `must answer true or false, at once; got ${show(answer)}`
}

export function watchFault(answer: unknown): string | null {
  const fault = kindFault(answer, ['watching', 'unknown'])
  if (fault !== null) return fault
  const { kind, stop } = answer as Fields
  return kind === 'watching' && typeof stop !== 'function' ? `answered 'watching' without stop()` : null
}

export function eventFault(event: unknown): string | null {
  const fault = kindFault(event, ['granted', 'contended', 'revoked', 'freed', 'gap'])
  if (fault !== null) return fault
  const fields = event as Fields
  const { kind, name, id } = fields
  if (kind !== 'gap' && typeof name !== 'string') return `'${String(kind)}' came without the name`
  if (kind !== 'gap' && kind !== 'freed' && typeof id !== 'string')
    return `'${String(kind)}' came without the id`
  return kind === 'granted' ? grantFault(fields) : null
}

export function infoFault(info: unknown, name: string): string | null {
  if (isObject(info) && info['kind'] === 'unknown') return null
  const { holders, waiters } = isObject(info) ? info : NOTHING
  if (!isObject(info) || !Array.isArray(holders) || !Array.isArray(waiters)) {
    return `must answer { name, capacity, holders, waiters }; got ${show(info)}`
  }
  if (info['name'] !== name) return `was asked about one name and answered about another`
  for (const claim of (holders as readonly unknown[]).concat(waiters)) {
    if (!isObject(claim) || typeof claim['id'] !== 'string') return 'shows a claim without its id'
    if (!isTime(claim['expiresIn'])) return `shows a claim with ${show(claim['expiresIn'])} as expiresIn`
  }
  return null
}

export function pageFault(page: unknown): string | null {
  if (isObject(page) && page['kind'] === 'unknown') return null
  if (isObject(page) && Array.isArray(page['names'])) return null
  return `must answer { names }, with a cursor when there are more; got ${show(page)}`
}

function kindFault(answer: unknown, kinds: readonly string[]): string | null {
  const kind = isObject(answer) ? answer['kind'] : undefined
  if (typeof kind === 'string' && kinds.includes(kind)) return null
  const got = kind === undefined ? show(answer) : `kind ${show(kind)}`
  return `must answer with one of the kinds ${kinds.join(', ')}; got ${got}`
}

function grantFault(grant: Fields): string | null {
  const { token, count } = grant
  if (typeof token !== 'bigint') return `granted with ${show(token)} as the token; it is a bigint`
  if (!Number.isSafeInteger(count) || (count as number) < 1) {
    return `granted with ${show(count)} as the count of tokens; it is 1 at least`
  }
  return contendedFault({ kind: 'renewed', contended: grant['contended'] })
}

function contendedFault({ kind, contended }: Fields): string | null {
  if (kind !== 'renewed' || typeof contended === 'boolean') return null
  return `says ${show(contended)} for contended; it is true or false`
}

function isTime(value: unknown): boolean {
  return typeof value === 'number' && value >= 0
}

/** Never what is inside an object: there may be ids in it. */
function show(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (isObject(value)) {
    const kind = typeof value['kind'] === 'string' ? ` of kind ${inQuotes(value['kind'])}` : ''
    return `an object${kind} with ${Object.keys(value).join(', ') || 'nothing in it'}`
  }
  return typeof value === 'bigint' ? `${value}n` : typeof value === 'string' ? inQuotes(value) : String(value)
}
