import type { At, FaultRecord, ViolationRecord } from '../record.ts'
import type { Evidence, Settings } from './evidence.ts'
import { expectedOf } from './expected.ts'
import { median } from './in-order.ts'
import type { NemesisFacts } from './nemesis.ts'
import { since } from './timeline.ts'

/** A time in which something was done to the world, or had not worn off yet. Outside of all of them nothing may break. */
export interface Window {
  readonly kind: string
  readonly target?: string
  readonly from: At
  /** Until when somebody may believe what the fault made wrong. */
  readonly belief: At
  /** Until when it may keep locks from moving, connections from working and leases from being renewed. */
  readonly trouble: At
}

/** The way from a wrong belief to the write that shows it, on a busy machine. */
const LATE_MS = 500
/** Connections are made again, and clients that died are forgotten. */
const RECOVERY_MS = 1500

/** How long the store may keep what a dead client held. */
export function expiryOf({ ttl, lateExpiry }: Pick<Settings, 'ttl' | 'lateExpiry'>): number {
  return ttl + lateExpiry
}

/** Until when a fault may keep locks from moving. */
export function troubleAfter(
  { at, until = at }: FaultRecord,
  settings: Pick<Settings, 'ttl' | 'lateExpiry'>,
): At {
  return until + expiryOf(settings) + settings.ttl + RECOVERY_MS
}

export function windowsOf({ faults, settings }: Evidence): Window[] {
  const expiry = expiryOf(settings)
  return faults.map((fault) => {
    const over = fault.until ?? fault.at
    return {
      kind: fault.kind,
      target: fault.target,
      from: fault.at,
      // What did not come about made nothing wrong, though it may have been in somebody's way.
      belief: fault.absent === true ? fault.at : over + expiry + LATE_MS,
      trouble: troubleAfter(fault, settings),
    }
  })
}

/** Slower than this, and the machine or the store is so busy that clients may miss a renewal for want of a processor. */
const SLOW = { least: 100, most: 250, ofTtl: 1 / 8 }

/** A store whose answers usually take more of the ttl than this is too far away for what takes several of them, as renewals of some do. */
const FAR = 1 / 40

/** How long the store takes for most of its answers to the lab, in milliseconds. */
export function usualAnswer({ looks }: Pick<Evidence, 'looks'>): number {
  return median(looks.map(({ from, to }) => Number(to - from) / 1e6))
}

/** Times in which the lab's own questions were answered late, or a process was given no processor: nobody's doing. */
export function busyOf(evidence: Evidence, most: number = Infinity): Window[] {
  const { looks, stalls, began, settings } = evidence
  if (usualAnswer(evidence) > settings.ttl * FAR)
    return [{ kind: 'busy', from: 0, belief: 0, trouble: Infinity }]
  const bound = Math.min(slowerThan(settings), most)
  const slow = looks.map(({ from, to }) => ({ from: since(began, from), to: since(began, to) }))
  const windows: { readonly kind: 'busy'; readonly from: At; readonly belief: At; trouble: At }[] = []
  for (const { from, to } of [...slow, ...stalls].sort((a, b) => a.from - b.from)) {
    if (to - from <= bound) continue
    const trouble = to + expiryOf(settings)
    const last = windows.at(-1)
    // One time, however many tell of it: at a slow store all questions do.
    if (last !== undefined && from <= last.trouble) last.trouble = Math.max(last.trouble, trouble)
    else windows.push({ kind: 'busy', from, belief: from, trouble })
  }
  return windows
}

function slowerThan({ ttl }: Settings): number {
  return Math.max(SLOW.least, Math.min(SLOW.most, ttl * SLOW.ofTtl))
}

/** Whether most answers were that late when nothing was in the way any more: a turn for everybody takes many of them. */
export function slowInTheEnd({ looks, began, healedAt, settings }: Evidence): boolean {
  const last = looks.filter(({ from }) => since(began, from) >= healedAt)
  return usualAnswer({ looks: last }) > settings.ttl * FAR
}

/** What may stand in one client's way: that another was killed does not. */
export function inTheWayOf(client: string, windows: readonly Window[]): readonly Window[] {
  return windows.filter(({ kind, target }) => kind !== 'kill' || target === client)
}

/** Whether a fault stood in the way at some moment of this time. */
export function troubled(windows: readonly Window[], from: At, to: At = from): boolean {
  return windows.some((window) => window.from <= to && window.trouble >= from)
}

/** Whether a violation is one that the store's table allows, by a fault that was there when it happened. */
export function excused(
  { check, at }: ViolationRecord,
  windows: readonly Window[],
  { nemeses, capabilities }: Settings,
): boolean {
  const allows = (kind: string): boolean => {
    const facts = nemeses.find((one) => one.kind === kind)
    return facts !== undefined && expectedOf(check, facts, capabilities) !== 'holds'
  }
  return windows.some(
    ({ kind, from, belief }) => allows(kind) && (at === undefined || (from <= at && at <= belief)),
  )
}

/** Whether a fault lasted as long as it says. */
export function lasted({ at, until, least, absent }: FaultRecord): boolean {
  if (absent === true) return false
  return least === undefined || (until !== undefined && until - at >= least)
}

/** Those of a run's faults that were really there. */
export function struckBy({ faults, settings }: Evidence): readonly NemesisFacts[] {
  const kinds = new Set(faults.filter(lasted).map(({ kind }) => kind))
  return settings.nemeses.filter(({ kind }) => kind === 'none' || kinds.has(kind))
}
