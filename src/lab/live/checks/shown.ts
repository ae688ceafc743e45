import type { HistoryEvent } from '../../../testkit/history.ts'
import type { Hold } from '../../../testkit/holds.ts'
import type { ViolationRecord } from '../../record.ts'
import type { Evidence } from '../evidence.ts'
import { since } from '../timeline.ts'
import type { Window } from '../windows.ts'
import { expiryOf, troubled } from '../windows.ts'

/** How long a downgrade may take. */
const DOWNGRADE_NS = 1_000_000_000n

/** Whoever holds a lock before and after the store was asked about it, is shown as its holder. */
export function unseenOf(
  { looks, began, settings, clients }: Evidence,
  holds: readonly Hold[],
  windows: readonly Window[],
): ViolationRecord[] {
  const told = new Set<Hold>()
  const known = new Set(clients.map(({ label }) => label))
  return looks.flatMap(({ name, from, to, holders }) => {
    const asked = since(began, from)
    if (troubled(windows, asked - expiryOf(settings), since(began, to))) return []
    return holds.flatMap((hold) => {
      if (hold.name !== name || hold.from >= from || hold.to <= to || told.has(hold)) return []
      const { process: client, readsFrom } = hold
      // A writer that becomes a reader may be neither to somebody who looks at one thing after the other.
      if (readsFrom !== undefined && readsFrom <= to && from - readsFrom < DOWNGRADE_NS) return []
      // Some stores, and another library's backend, show that somebody holds it, and not always who.
      if (holders.some((owner) => owner === client || !known.has(owner))) return []
      told.add(hold)
      const message = `the store does not show that ${client} holds "${name}"`
      return [{ check: 'inspection', message, at: asked, clients: [client] }]
    })
  })
}

/** Whoever goes on as a reader is shown as one, once that was confirmed. */
export function stillWritersOf(
  { looks, history, began, settings }: Evidence,
  holds: readonly Hold[],
  windows: readonly Window[],
): ViolationRecord[] {
  const key = ({ process, op }: Pick<HistoryEvent, 'process' | 'op'>): string => `${process}\n${op}`
  const confirmed = new Map(
    history.flatMap((event) =>
      event.kind === 'downgrade' && event.phase === 'ok' ? [[key(event), event.at]] : [],
    ),
  )
  const reads = holds.flatMap((hold) => {
    const since = confirmed.get(key(hold))
    return since === undefined ? [] : [{ hold, since }]
  })
  const found = reads.flatMap(({ hold, since: from }) => {
    const { name, process: client, to } = hold
    const look = looks.find(
      (one) => one.name === name && one.from > from && one.to < to && one.writers?.includes(client) === true,
    )
    const expiry = expiryOf(settings)
    if (look === undefined || troubled(windows, since(began, look.from) - expiry, since(began, look.to)))
      return []
    const message = `the store shows ${client} as the writer of "${name}" after its downgrade was confirmed`
    return [{ check: 'inspection', message, at: since(began, look.from), clients: [client] }]
  })
  return found
}
