import { byName } from '../../../testkit/checkers/violation.ts'
import type { At, ViolationRecord } from '../../record.ts'
import type { Evidence, Refusal } from '../evidence.ts'
import { SHORT_WAIT } from '../evidence.ts'
import { firstWhere, Times } from '../in-order.ts'
import { since } from '../timeline.ts'
import type { Window } from '../windows.ts'
import { expiryOf, troubled, usualAnswer } from '../windows.ts'
import { presencesOf } from './presence.ts'
import { waitsOf } from './progress.ts'

/**
 * A try is refused only where somebody is in its way: what is asked for does not fit beside what may be there, or somebody
 * had asked before and was not told yet.
 */
export function refusalsOf(evidence: Evidence, windows: readonly Window[]): ViolationRecord[] {
  const { refusals = [] } = evidence
  return freeAll(evidence, windows, refusals).map(({ client, name, told }) => {
    const message = `${client} was refused "${name}" although nobody was in its way`
    return { check: 'refusals', message, at: told, clients: [client] }
  })
}

/** Long enough for a waiter to be given what is free: so long, so many of the store's answers, and as long as nearly all grants of it took. */
const SERVED = { ms: 25, answers: 10, grants: 0.95 }
/** Fewer grants of what was free say nothing of how long they take, and more say the same. */
const SAMPLES = { least: 8, most: 200 }
/** One may have been unlucky. */
export const UNSERVED = 3

/** In how many milliseconds a waiter is answered, and given what is free. */
export function servedIn(evidence: Evidence): number {
  return Math.max(SERVED.ms, SERVED.answers * usualAnswer(evidence), freeGrantIn(evidence))
}

/** A grant may be many answers. */
function freeGrantIn(evidence: Evidence): number {
  const given = evidence.history.flatMap(({ process, op, kind, phase }) =>
    kind === 'acquire' && phase === 'ok' ? [`${process}\n${op}`] : [],
  )
  const known = new Set(given)
  const every = Math.ceil(given.length / SAMPLES.most)
  const grants = waitsOf(evidence.history)
    .filter(([, , { process, op }]) => known.has(`${process}\n${op}`))
    .filter((_, index) => index % every === 0)
    .flatMap(([from, at, { process: client, name, weight = 1, capacity = 1 }]) =>
      at === undefined ? [] : [{ client, name, weight, capacity, from, at }],
    )
  const free = freeAll(evidence, [], grants)
  if (free.length < SAMPLES.least) return 0
  const took = free.map((one) => one.took).sort((a, b) => a - b)
  return took[Math.floor(took.length * SERVED.grants)] ?? 0
}

/** Nor is a wait given up in vain, when the store has had the time to answer. */
export function unservedOf(evidence: Evidence, windows: readonly Window[]): ViolationRecord[] {
  const least = servedIn(evidence)
  const long = givenUpOf(evidence).filter(({ from, at }) => Number(at - from) / 1e6 >= least)
  const found = freeAll(evidence, windows, long)
  const [first] = found
  if (first === undefined || found.length < UNSERVED) return []
  const { client, name, told } = first
  const message = `${client} waited for "${name}" in vain although nobody was in its way; ${found.length} waits of ${Math.round(least)} ms and more were`
  return [{ check: 'refusals', message, at: told, clients: [client] }]
}

/** Waits that ended without a grant and without a reason of the store's, before their client was told to end. */
export function givenUpOf({ history, refusals = [], errors, clients, began }: Evidence): Refusal[] {
  const closed = new Map(clients.map(({ label, closing }) => [label, closing?.from ?? Infinity]))
  const given = new Set(
    history.flatMap((one) => (one.token === undefined ? [] : [`${one.process}\n${one.op}`])),
  )
  /** Of each client, when it began calls that ended with such a reason. */
  const answered = new Map<string, bigint[]>()
  for (const { client, from } of [...refusals, ...errors.filter(({ call }) => call !== SHORT_WAIT)]) {
    const known = answered.get(client)
    if (known === undefined) answered.set(client, [from])
    else known.push(from)
  }
  for (const times of answered.values()) times.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  return waitsOf(history).flatMap(([from, at, { process: client, name, op, weight = 1, capacity = 1 }]) => {
    if (at === undefined || since(began, at) >= (closed.get(client) ?? 0)) return []
    if (given.has(`${client}\n${op}`)) return []
    const answers = answered.get(client) ?? []
    const first = answers[firstWhere(answers, (asked) => asked >= from)]
    if (first !== undefined && first <= at) return []
    return [{ client, name, weight, capacity, from, at }]
  })
}

/** Those of the calls for which there was room, with nobody before them. */
function freeAll(
  evidence: Evidence,
  windows: readonly Window[],
  calls: readonly Refusal[],
): { readonly client: string; readonly name: string; readonly told: At; readonly took: number }[] {
  const { began, settings } = evidence
  const all = new Map([...byName(presencesOf(evidence))].map(([name, own]) => [name, new Times(own)]))
  return calls.flatMap(({ client, name, weight, capacity, from, at }) => {
    const [asked, told] = [since(began, from), since(began, at)]
    // What a fault left at the store is gone when it has run out.
    if (troubled(windows, asked - expiryOf(settings), told)) return []
    const there = all.get(name)?.meeting(asked, told) ?? []
    // A client makes one call at a time: the last that it began is this one.
    const own = there.findLast((one) => one.client === client && one.from <= asked)
    const others = there.filter((one) => one !== own)
    const taken = others.reduce((sum, one) => sum + one.weight, 0)
    const asking = others.some(({ granted = Infinity }) => granted > asked)
    return asking || taken + weight > capacity ? [] : [{ client, name, told, took: told - asked }]
  })
}
