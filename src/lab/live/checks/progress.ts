import type { HistoryEvent } from '../../../testkit/history.ts'
import type { Hold } from '../../../testkit/holds.ts'
import type { ViolationRecord } from '../../record.ts'
import type { Evidence, Stall } from '../evidence.ts'
import { median, Times } from '../in-order.ts'
import { since } from '../timeline.ts'
import type { Window } from '../windows.ts'
import { expiryOf, inTheWayOf, troubled, usualAnswer } from '../windows.ts'

export interface Progress {
  readonly violations: readonly ViolationRecord[]
  /** Checks that had nothing to look at, and why. */
  readonly idle: ReadonlyMap<string, string>
}

/** How long a lock may be free although somebody waits for it, where the store tells waiters, and where they have to ask. */
const WAKE_UP_MS: Readonly<Record<'push' | 'poll', number>> = { push: 1000, poll: 3000 }
/** Beside that, so many of the store's answers: one that gave up may stand before it, and has to be asked after. */
const WAKE_UP_ANSWERS = 10
/** The same for most of the times. Beside it, so many of the store's answers. */
const USUAL_MS = { push: 60, poll: 600 }
const USUAL_ANSWERS = 20
/** For nine of ten times, where waiters are told: so often that. */
const SELDOM_SLOWER = 4
/** Fewer say nothing about most. */
const LEAST_SAMPLES = 8
/** Three and more meet less often: some are there to wait, or about to go. */
const MANY_SAMPLES = 30

/** A time in which nobody held a name although somebody wanted it, or in which there was room for all who did. */
interface Gap {
  readonly name: string
  readonly from: number
  readonly to: number
  /** How many others were there when it began. */
  readonly beside?: number
}

export function wakeUpWithin(evidence: Evidence): number {
  return WAKE_UP_MS[evidence.settings.capabilities.wakeups] + WAKE_UP_ANSWERS * usualAnswer(evidence)
}

/** Whether locks move on, and leases last, while nothing stands in the way. */
export function progressOf(evidence: Evidence, holds: readonly Hold[], windows: readonly Window[]): Progress {
  const renewal = renewalsOf(evidence, holds, windows)
  const stalls = new Times(evidence.stalls)
  const soon = wakeUpWithin(evidence)
  const timed = (gaps: readonly Gap[]): { readonly gap: Gap; readonly ms: number }[] =>
    gaps
      .filter(({ from, to }) => !troubled(windows, from, to))
      .map((gap) => ({ gap, ms: gap.to - gap.from - stalledIn(stalls, gap) }))
  // Free is what the store has confirmed to be. A release that takes long, or nobody knows the end of, is told of as that.
  const releases = releasesOf(evidence)
  const lateIn = (all: ReturnType<typeof timed>, what: string): ViolationRecord[] =>
    all
      .filter(({ ms }) => ms > soon)
      .map(({ gap, ms }) => ({ gap, ms: Math.min(ms, gap.to - confirmedIn(releases, gap)) }))
      .filter(({ ms }) => ms > soon)
      .map(({ gap, ms }) => ({
        check: 'wake-ups',
        message: `"${gap.name}" ${what} for ${Math.round(ms)} ms although somebody waited for it`,
        at: gap.from,
      }))
  const took = timed(gapsOf(evidence, holds))
  const room = timed(roomOf(evidence, holds))
  const late = [...lateIn(took, 'was free'), ...lateIn(room, 'had room for everybody')]
  const slow = slowness(
    evidence,
    took.map(({ ms }) => ms),
  )
  const alone = neverShared(
    evidence,
    holds,
    room.map(({ gap }) => gap),
  )
  const idle = new Map(renewal.idle)
  if (took.length === 0) idle.set('wake-ups', 'nobody waited for a lock while no fault was there')
  if (took.length < LEAST_SAMPLES)
    idle.set('throughput', `a lock changed hands only ${took.length} times while no fault was there`)
  return { violations: [...renewal.violations, ...late, ...slow, ...alone], idle }
}

/** Locks that several may hold are held by as many as ask for them at once and find room, now and then. */
function neverShared(
  { settings }: Evidence,
  holds: readonly Hold[],
  waits: readonly Gap[],
): ViolationRecord[] {
  const names = new Set(waits.map(({ name }) => name))
  return [...names].flatMap((name) => {
    const own = holds.filter((hold) => hold.name === name).sort((a, b) => (a.from < b.from ? -1 : 1))
    let ends: bigint[] = []
    let most = 0
    for (const { from, to } of own) {
      ends = [...ends.filter((end) => end > from), to]
      most = Math.max(most, ends.length)
    }
    const chances = waits.filter((wait) => wait.name === name && (wait.beside ?? 0) >= most).length
    // Those who have to ask again and again come and go without meeting each other.
    const enough =
      most === 1 ? LEAST_SAMPLES : settings.capabilities.wakeups === 'push' ? MANY_SAMPLES : Infinity
    if (most === 0 || chances < enough) return []
    const many = most === 1 ? 'two' : most + 1
    const message = `"${name}" was never held by ${many} at once, although there was room ${chances} times`
    return [{ check: 'throughput', message }]
  })
}

/**
 * Most hand-overs take a few answers of the store's: a collapse is seen here, whatever the machine. Where waiters are told, nearly all do:
 * wake-ups that get lost are made good by the waiter's next question, too soon for a lock to be free for long.
 */
function slowness(evidence: Evidence, took: readonly number[]): ViolationRecord[] {
  const { wakeups } = evidence.settings.capabilities
  const most = USUAL_MS[wakeups] + USUAL_ANSWERS * usualAnswer(evidence)
  const slow = (bound: number, often: string): ViolationRecord[] => {
    const { length } = took.filter((ms) => ms > bound)
    const message = `a free lock took more than ${Math.round(bound)} ms to be in the hands of whoever waited, ${length} of ${took.length} times; ${often} should not`
    return [{ check: 'throughput', message }]
  }
  if (took.length >= LEAST_SAMPLES && median(took) > most) return slow(most, 'most')
  const seldom = SELDOM_SLOWER * most
  const late = took.filter((ms) => ms > seldom).length
  const told = wakeups === 'push' && took.length >= MANY_SAMPLES
  return told && late > took.length / 10 ? slow(seldom, 'nine of ten') : []
}

/** Sections longer than the ttl keep their lease, and none is lost, unless something stands in the way. */
function renewalsOf(
  { history, began, settings }: Evidence,
  holds: readonly Hold[],
  windows: readonly Window[],
): Progress {
  const ends = history.filter(
    ({ kind, phase }) => kind === 'lost' || (kind === 'release' && phase === 'fail'),
  )
  const told = new Set<string>()
  const violations = ends.flatMap(({ process, op, name, at }) => {
    const when = since(began, at)
    const key = `${process}\n${op}`
    if (told.has(key) || troubled(inTheWayOf(process, windows), when - expiryOf(settings), when)) return []
    told.add(key)
    const message = `${process} lost its lease on "${name}" although nothing stood in the way`
    return [{ check: 'renewal', message, at: when, clients: [process] }]
  })
  const long = holds.filter(({ from, to }) => {
    const begins = since(began, from)
    // As far as it lasted before the next fault.
    const next = Math.min(...windows.map((window) => (window.from >= begins ? window.from : Infinity)))
    return Math.min(since(began, to), next) - begins > expiryOf(settings) && !troubled(windows, begins)
  })
  const kinds = new Map(settings.names.map(({ name, kind }) => [name, kind]))
  const seen = new Set(long.map(({ name }) => kinds.get(name)))
  const missing = [...new Set(kinds.values())].filter((kind) => !seen.has(kind))
  const idle = new Map<string, string>()
  if (long.length === 0) idle.set('renewal', 'no section outlived its ttl while no fault was there')
  else if (missing.length > 0)
    idle.set('renewal', `no section of a ${missing.join(' or a ')} outlived its ttl while no fault was there`)
  return { violations, idle }
}

/** When names were wanted and not held, by what clients wrote down. */
function gapsOf({ history, began, clients, endedAt }: Evidence, holds: readonly Hold[]): Gap[] {
  const gone = new Map(clients.map(({ label, exit }) => [label, exit?.at ?? endedAt]))
  type Step = { readonly at: number; readonly wanted: number; readonly held: number }
  const steps = new Map<string, Step[]>()
  const add = (name: string, step: Step): void => {
    const known = steps.get(name)
    if (known === undefined) steps.set(name, [step])
    else known.push(step)
  }
  for (const [from, to, { name, process }] of waitsOf(history)) {
    const end = to === undefined ? (gone.get(process) ?? endedAt) : since(began, to)
    add(name, { at: since(began, from), wanted: 1, held: 0 })
    add(name, { at: end, wanted: -1, held: 0 })
  }
  for (const { name, from, to } of holds) {
    add(name, { at: since(began, from), wanted: 0, held: 1 })
    add(name, { at: since(began, to), wanted: 0, held: -1 })
  }
  return [...steps].flatMap(([name, all]) => {
    // Of what happens at once, beginnings first: a hand-over within one clock tick is no gap.
    const inOrder = all.sort((a, b) => a.at - b.at || b.held + b.wanted - (a.held + a.wanted))
    const gaps: Gap[] = []
    let [wanted, held] = [0, 0]
    let since: number | undefined
    for (const step of inOrder) {
      wanted += step.wanted
      held += step.held
      const free = wanted > 0 && held === 0
      if (free) since ??= step.at
      else if (since !== undefined) {
        // Only what a grant ended: a wait that was given up did not have to be served.
        if (step.held === 1) gaps.push({ name, from: since, to: step.at })
        else if (step.at - since > WAKE_UP_MS.poll) gaps.push({ name, from: since, to: step.at })
        since = undefined
      }
    }
    return gaps
  })
}

/** Of locks that several may hold: how long each wait went on while there was room for everybody. */
function roomOf({ history, began, clients, endedAt }: Evidence, holds: readonly Hold[]): Gap[] {
  const gone = new Map(clients.map(({ label, exit }) => [label, exit?.at ?? endedAt]))
  const ends = new Map(holds.map(({ process, op, to }) => [`${process}\n${op}`, since(began, to)]))
  type Step = { readonly at: number; readonly by: number; readonly begins?: Gap; readonly ends?: Gap }
  const steps = new Map<string, { readonly capacity: number; readonly all: Step[] }>()
  for (const [from, to, { name, process, op, weight = 1, capacity = 1 }] of waitsOf(history)) {
    if (capacity === 1) continue
    const over = to === undefined ? (gone.get(process) ?? endedAt) : since(began, to)
    const wait = { name, from: since(began, from), to: over }
    const end = ends.get(`${process}\n${op}`)
    const known = steps.get(name) ?? { capacity, all: [] }
    steps.set(name, known)
    known.all.push({ at: wait.from, by: weight, begins: wait }, { at: end ?? wait.to, by: -weight })
    // A wait that was given up soon did not have to be served.
    if (end !== undefined || wait.to - wait.from > WAKE_UP_MS.poll)
      known.all.push({ at: wait.to, by: 0, ends: wait })
  }
  return [...steps.values()].flatMap(({ capacity, all }) => {
    let taken = 0
    let there = 0
    let room = 0
    const beside = new Map<Gap, number>()
    return all
      .sort((a, b) => a.at - b.at || b.by - a.by)
      .flatMap(({ at, by, begins, ends }) => {
        const full = taken > capacity
        taken += by
        there += Math.sign(by)
        if (full && taken <= capacity) room = at
        if (begins !== undefined && taken <= capacity) beside.set(begins, there - 1)
        if (ends === undefined || taken > capacity) return []
        return [{ ...ends, from: Math.max(room, ends.from), beside: beside.get(ends) ?? 0 }]
      })
  })
}

/** Every wait, from the call to its end. */
export function waitsOf(history: readonly HistoryEvent[]): [bigint, bigint | undefined, HistoryEvent][] {
  const open = new Map<string, [bigint, bigint | undefined, HistoryEvent]>()
  for (const event of history) {
    if (event.kind !== 'acquire') continue
    const key = `${event.process}\n${event.op}`
    const wait = open.get(key)
    if (event.phase === 'invoke') open.set(key, [event.at, undefined, event])
    else if (event.phase !== 'queued' && wait !== undefined) wait[1] = event.at
  }
  return [...open.values()]
}

/** A release, from its call until the store has confirmed it, or must have forgotten the claim. */
type Release = readonly [from: number, to: number]

function releasesOf({ history, began, settings }: Evidence): ReadonlyMap<string, Release[]> {
  const called = new Map<string, number>()
  const all = new Map<string, Release[]>()
  for (const { process, op, name, kind, phase, at } of history) {
    if (kind !== 'release') continue
    const key = `${process}\n${op}`
    const when = since(began, at)
    if (phase === 'invoke') called.set(key, when)
    else {
      const release: Release = [called.get(key) ?? when, phase === 'info' ? when + expiryOf(settings) : when]
      const known = all.get(name)
      if (known === undefined) all.set(name, [release])
      else known.push(release)
    }
  }
  return all
}

/** When the last release that was under way as this time began was confirmed. */
function confirmedIn(releases: ReadonlyMap<string, Release[]>, { name, from, to }: Gap): number {
  const ends = (releases.get(name) ?? []).filter(([called, end]) => called <= from && end > from)
  return Math.min(to, Math.max(from, ...ends.map(([, end]) => end)))
}

/** For how much of this time somebody stood still. What several tell of at once counts once. */
export function stalledIn(stalls: Times<Stall>, { from, to }: Pick<Gap, 'from' | 'to'>): number {
  let sum = 0
  let counted = from
  for (const stall of stalls.meeting(from, to)) {
    const end = Math.min(to, stall.to)
    sum += Math.max(0, end - Math.max(counted, stall.from))
    counted = Math.max(counted, end)
  }
  return sum
}
