import { byName } from '../../../testkit/checkers/violation.ts'
import type { HistoryEvent } from '../../../testkit/history.ts'
import type { Hold } from '../../../testkit/holds.ts'
import type { ViolationRecord } from '../../record.ts'
import type { Evidence, Look } from '../evidence.ts'
import { firstWhere } from '../in-order.ts'
import { since } from '../timeline.ts'
import type { Window } from '../windows.ts'
import { expiryOf, troubled } from '../windows.ts'

/** Whoever holds a lock before and after the store was asked about it, is shown as its holder. */
export function unseenOf(
  { looks, history, began, settings, clients }: Evidence,
  holds: readonly Hold[],
  windows: readonly Window[],
): ViolationRecord[] {
  const confirmed = downgradesOf(history)
  const known = new Set(clients.map(({ label }) => label))
  const unseen = (hold: Hold, { from, to, holders }: Look): boolean => {
    if (hold.from >= from || hold.to <= to) return false
    if (troubled(windows, since(began, from) - expiryOf(settings), since(began, to))) return false
    // A writer that becomes a reader may be neither to somebody who looks at one thing after the other, until that is confirmed.
    if (hold.readsFrom !== undefined && hold.readsFrom <= to) {
      const since = confirmed.get(storyOf(hold))
      if (since === undefined || from <= since) return false
    }
    // Some stores, and another library's backend, show that somebody holds it, and not always who.
    return !holders.some((owner) => owner === hold.process || !known.has(owner))
  }
  const byNames = looksInOrder(looks)
  return holds
    .flatMap((hold) => {
      const look = during(hold, byNames.get(hold.name) ?? []).find((one) => unseen(hold, one))
      if (look === undefined) return []
      const { process: client, name } = hold
      const message = `the store does not show that ${client} holds "${name}"`
      return [{ check: 'inspection', message, at: since(began, look.from), clients: [client] }]
    })
    .sort((a, b) => a.at - b.at)
}

/** Of each name. */
function looksInOrder(looks: readonly Look[]): ReadonlyMap<string, readonly Look[]> {
  return byName([...looks].sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0)))
}

/** Those of the looks, which are in order, that were begun while it was held. */
function during({ from, to }: Pick<Hold, 'from' | 'to'>, looks: readonly Look[]): readonly Look[] {
  const since = (time: bigint): number => firstWhere(looks, (look) => look.from >= time)
  return looks.slice(since(from), since(to))
}

const storyOf = ({ process, op }: Pick<HistoryEvent, 'process' | 'op'>): string => `${process}\n${op}`

/** When the store had confirmed that a writer goes on as a reader. */
function downgradesOf(history: readonly HistoryEvent[]): ReadonlyMap<string, bigint> {
  return new Map(
    history.flatMap((event) =>
      event.kind === 'downgrade' && event.phase === 'ok' ? [[storyOf(event), event.at]] : [],
    ),
  )
}

/** Whoever goes on as a reader is shown as one, once that was confirmed. */
export function stillWritersOf(
  { looks, history, began, settings }: Evidence,
  holds: readonly Hold[],
  windows: readonly Window[],
): ViolationRecord[] {
  const confirmed = downgradesOf(history)
  const reads = holds.flatMap((hold) => {
    const since = confirmed.get(storyOf(hold))
    return since === undefined ? [] : [{ hold, since }]
  })
  const byNames = looksInOrder(looks)
  const found = reads.flatMap(({ hold, since: from }) => {
    const { name, process: client, to } = hold
    const look = during({ from, to }, byNames.get(name) ?? []).find(
      (one) => one.from > from && one.to < to && one.writers?.includes(client) === true,
    )
    const expiry = expiryOf(settings)
    if (look === undefined || troubled(windows, since(began, look.from) - expiry, since(began, look.to)))
      return []
    const message = `the store shows ${client} as the writer of "${name}" after its downgrade was confirmed`
    return [{ check: 'inspection', message, at: since(began, look.from), clients: [client] }]
  })
  return found
}
