import type { At } from '../../record.ts'
import type { Evidence } from '../evidence.ts'
import { since } from '../timeline.ts'
import { expiryOf } from '../windows.ts'

/** A time in which a call may have had something at the store, in line or held. */
export interface Presence {
  readonly client: string
  readonly name: string
  readonly weight: number
  readonly from: At
  /** When it was told that it has it. */
  readonly granted?: At
  readonly to: At
}

/** A wait that was given up is cleaned up in the background: something may stand for it so long. */
export const CLEANED_UP_MS = 1000

/** All calls of a run, in the order in which they were made, each for as long as the store may have known of it. */
export function presencesOf({ history, began, clients, endedAt, settings }: Evidence): Presence[] {
  const expiry = expiryOf(settings)
  const gone = new Map(clients.map(({ label, exit }) => [label, (exit?.at ?? endedAt) + expiry]))
  const all = new Map<string, { -readonly [K in keyof Presence]: Presence[K] }>()
  for (const { process: client, op, name, kind, phase, at, weight = 1 } of history) {
    const key = `${client}\n${op}`
    const when = since(began, at)
    if (kind === 'acquire' && phase === 'invoke')
      all.set(key, { client, name, weight, from: when, to: gone.get(client) ?? Infinity })
    const presence = all.get(key)
    if (presence === undefined || phase === 'invoke') continue
    if (kind === 'acquire' && phase === 'ok') presence.granted = when
    if (kind === 'acquire' && phase === 'fail') presence.to = when + CLEANED_UP_MS
    if (kind === 'release') presence.to = phase === 'info' ? when + expiry : when
  }
  return [...all.values()].sort((a, b) => a.from - b.from)
}
