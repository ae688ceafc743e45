import { checkAbortLatency } from '../../../testkit/checkers/abort-latency.ts'
import type { Loss } from '../../../testkit/checkers/abort-latency.ts'
import { checkBelief } from '../../../testkit/checkers/belief.ts'
import type { HistoryEvent } from '../../../testkit/history.ts'
import type { FaultRecord, ViolationRecord } from '../../record.ts'
import type { ErrorRecord, Evidence } from '../evidence.ts'
import { LATE, SHORT_WAIT } from '../evidence.ts'
import { firstWhere } from '../in-order.ts'
import { since } from '../timeline.ts'
import type { Window } from '../windows.ts'
import { expiryOf, inTheWayOf, troubled } from '../windows.ts'
import { CLEANED_UP_MS } from './presence.ts'
import { givenUpOf, servedIn, UNSERVED } from './refusals.ts'

/** What users may get while something stands in the way. Everything else is a mistake of ours at any time. */
const IN_TROUBLE: ReadonlySet<string> = new Set([
  'LOCK_TIMEOUT',
  'LOCK_LOST',
  'LOCK_ABORTED',
  'STORE_UNAVAILABLE',
  'QUORUM_UNAVAILABLE',
  LATE,
])
/** How late a timer may be on a busy machine. */
const TIMER_MS = 500
/** What a lease says of its end is so much off at the most. */
const PROMISED_MS = 50
const SHOWN = 3

/** Nobody ends whom the lab did not end. */
export function endsOf({ clients }: Evidence): ViolationRecord[] {
  return clients.flatMap(({ label, exit }) =>
    exit === undefined || exit.planned
      ? []
      : [
          {
            check: 'clients',
            message: `${label} ended by itself: ${exit.how}`,
            at: exit.at,
            clients: [label],
          },
        ],
  )
}

/** No call fails unless something stands in its way, and then with an error that says so. */
export function errorsOf(evidence: Evidence, windows: readonly Window[]): ViolationRecord[] {
  const { errors, began } = evidence
  const told = [...errors, ...unsureOf(evidence)].filter(({ client, code = '', from, at }) => {
    const expected = troubled(inTheWayOf(client, windows), since(began, from), since(began, at))
    return !(expected && IN_TROUBLE.has(code))
  })
  const unanswered = new Set(unansweredOf(evidence, told))
  const found = told.filter((error) => error.call !== SHORT_WAIT || unanswered.has(error))
  const kinds = new Map<string, typeof found>()
  for (const error of found) {
    const kind = `${error.call} ${error.code ?? error.message}`
    const alike = kinds.get(kind)
    if (alike === undefined) kinds.set(kind, [error])
    else alike.push(error)
  }
  return [...kinds.values()].flatMap((alike) =>
    alike.slice(0, SHOWN).map(({ client, call, message, at }) => ({
      check: 'errors',
      message: `${client}: ${call} failed with "${message}"${alike.length > 1 ? `, ${alike.length} times in all` : ''}`,
      at: since(began, at),
      clients: [client],
    })),
  )
}

/** Waits that ended as if the store had not answered, although it had the time to: many of those that ended in vain. */
function unansweredOf(evidence: Evidence, errors: readonly ErrorRecord[]): readonly ErrorRecord[] {
  const least = servedIn(evidence)
  const long = ({ from, at }: Pick<ErrorRecord, 'from' | 'at'>): boolean => Number(at - from) / 1e6 >= least
  const found = errors.filter((error) => error.call === SHORT_WAIT && long(error))
  const enough = Math.max(UNSERVED, givenUpOf(evidence).filter(long).length / 4)
  return found.length < enough ? [] : found
}

/** Releases that did not fail, and could not say what became of them: no answer came. */
function unsureOf({ history, errors }: Evidence): ErrorRecord[] {
  const asked = new Map<string, bigint>()
  return history.flatMap(({ process: client, op, kind, phase, at }) => {
    if (kind !== 'release') return []
    const key = `${client}\n${op}`
    const from = asked.get(key) ?? at
    if (phase === 'invoke') asked.set(key, at)
    if (phase !== 'info') return []
    const told = errors.some(
      (one) => one.client === client && one.call === 'release' && one.from <= from && one.at >= at,
    )
    if (told) return []
    const message = 'unknown: the store did not answer'
    return [{ client, call: 'release', from, at, message, code: 'STORE_UNAVAILABLE' }]
  })
}

/** Closing ends, and without an error. */
export function closingsOf({ clients, endedAt }: Evidence): ViolationRecord[] {
  return clients.flatMap(({ label, closing, exit }) => {
    if (closing === undefined) return []
    const { from, to, error } = closing
    const violation = (message: string): ViolationRecord[] => [
      { check: 'closing', message: `${label}: ${message}`, at: from, clients: [label] },
    ]
    if (error !== undefined) return violation(`close() failed with "${error}"`)
    if (to !== undefined) return []
    // What ended by itself is told as that.
    if (exit?.planned === false) return []
    return violation(`close() had not ended after ${Math.round((exit?.at ?? endedAt) - from)} ms`)
  })
}

/** A lease that has ended says so, at once. */
export function beliefsOf(evidence: Evidence): ViolationRecord[] {
  const { history, began, faults, stalls, clients } = evidence
  const inOrder = [...history].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
  const stopped = faults
    .filter(({ kind }) => kind === 'pause' || kind === 'block')
    .map(({ target, at, until }) => ({ process: target, from: at, to: until ?? at }))
  // Whoever has a processor tells of a loss in time, whatever the others do.
  const busy = clients.flatMap(({ label }) =>
    stalls.flatMap(({ from, to, of = label }) => (of === label ? [{ process: label, from, to }] : [])),
  )
  const excuses = { standstills: [...stopped, ...busy], tolerance: TIMER_MS }
  // Another library may have no way to tell of a loss but to be asked.
  const asked = evidence.settings.tokens === false
  const losses = lossesOf(inOrder, began).filter(({ silent }) => !asked || silent !== true)
  const found = [
    ...checkBelief(inOrder),
    ...checkAbortLatency(losses, excuses),
    ...promisedMore(losses, faults, evidence.settings.ttl),
  ]
  return found.map(({ message }) => ({ check: 'belief', message }))
}

/** A lease that nothing can reach ends when it said that it would. What it said was left of it before was left. */
function promisedMore(
  losses: readonly Loss[],
  faults: readonly FaultRecord[],
  ttl: number,
): { readonly message: string }[] {
  const alone = faults.filter(({ kind, absent }) => kind === 'partition' && absent !== true)
  return losses.flatMap(({ process, name, token, validUntil, abortedAt, silent }) => {
    const left = Math.round(validUntil - abortedAt)
    const reached = !alone.some(
      // What was under way when it was cut off has come by then.
      ({ target, at, until = at }) => target === process && abortedAt > at + ttl / 4 && abortedAt < until,
    )
    if (silent === true || reached || left <= PROMISED_MS) return []
    const message = `${process}'s lease on "${name}" (token ${token}) ended ${left} ms before it had said, and nothing could have reached it`
    return [{ message }]
  })
}

/** Leases that told of their loss, and those that had not when they were given back. */
function lossesOf(history: readonly HistoryEvent[], began: bigint): Loss[] {
  const beliefs = new Map<string, { validUntil: number; token: bigint }>()
  return history.flatMap(({ process, op, name, kind, phase, at, validUntil, token }) => {
    const key = `${process}\n${op}`
    if (validUntil !== undefined && token !== undefined)
      beliefs.set(key, { validUntil: since(began, validUntil), token })
    const belief = beliefs.get(key)
    const silent = kind === 'release' && phase === 'invoke'
    if ((kind !== 'lost' && !silent) || belief === undefined) return []
    beliefs.delete(key)
    return [
      { process, name, ...belief, abortedAt: since(began, at), ...(silent && { silent: true as const }) },
    ]
  })
}

/** A claim whose release was confirmed, or that was given up in line, is gone from the store, not when it would have run out. */
export function unreleasedOf(evidence: Evidence, windows: readonly Window[]): ViolationRecord[] {
  const { looks, history, began, settings } = evidence
  const stories = storiesOf(history, expiryOf(settings))
  const told = new Set<string>()
  return looks.flatMap(({ name, from, to, holders, waiters }) =>
    [...new Set([...holders, ...waiters])].flatMap((owner) => {
      const at = since(began, from)
      if (troubled(windows, at - expiryOf(evidence.settings), at)) return []
      const last = lastBefore(to, stories.get(`${owner}\n${name}`) ?? [])
      if (last?.allGiven === undefined || last.allGiven >= from) return []
      const key = `${owner}\n${name}\n${last.asked}`
      if (told.has(key)) return []
      told.add(key)
      const ms = Math.round(Number(from - last.allGiven) / 1e6)
      const end = last.confirmed ? 'its release was confirmed' : 'its last call had to be gone'
      const message = holders.includes(owner)
        ? `"${name}" is still held by ${owner} ${ms} ms after ${end}`
        : `${owner} still stands in line for "${name}" ${ms} ms after its last wait had to be gone`
      return [{ check: 'leftovers', message, at, clients: [owner] }]
    }),
  )
}

interface Ended {
  readonly asked: bigint
  /** When the store had confirmed its release, or must have forgotten it; undefined where it may still have something. */
  given: bigint | undefined
  /** It had, and said so. */
  confirmed: boolean
  /** When that is so of all that were asked for before it, too. */
  allGiven: bigint | undefined
}

/** Of stories in the order in which they were asked for. */
function lastBefore(time: bigint, stories: readonly Ended[]): Ended | undefined {
  return stories[firstWhere(stories, ({ asked }) => asked >= time) - 1]
}

const CLEANED_UP_NS = BigInt(CLEANED_UP_MS) * 1_000_000n

function storiesOf(history: readonly HistoryEvent[], expiry: number): Map<string, Ended[]> {
  const forgotten = BigInt(Math.ceil(expiry)) * 1_000_000n + CLEANED_UP_NS
  const all = new Map<string, Ended[]>()
  const open = new Map<string, Ended>()
  for (const { process, op, name, kind, phase, at } of history) {
    const key = `${process}\n${op}`
    if (kind === 'acquire' && phase === 'invoke') {
      const story: Ended = { asked: at, given: undefined, confirmed: false, allGiven: undefined }
      open.set(key, story)
      const group = all.get(`${process}\n${name}`)
      if (group === undefined) all.set(`${process}\n${name}`, [story])
      else group.push(story)
    }
    const story = open.get(key)
    if (story === undefined) continue
    if (kind === 'release' && phase === 'ok') {
      story.given = at
      story.confirmed = true
    } else if (kind === 'lost' || (kind === 'release' && phase !== 'invoke')) story.given ??= at + forgotten
    if (kind === 'acquire' && phase === 'fail') story.given = at + CLEANED_UP_NS
  }
  for (const group of all.values()) {
    let latest: bigint | undefined = 0n
    for (const story of group.sort((a, b) => (a.asked < b.asked ? -1 : 1))) {
      const { given } = story
      if (latest === undefined || given === undefined) latest = undefined
      else if (given > latest) latest = given
      story.allGiven = latest
    }
  }
  return all
}
