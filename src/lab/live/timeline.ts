import type { HistoryEvent } from '../../testkit/history.ts'
import type { At, TimelineEvent } from '../record.ts'

const NS_PER_MS = 1e6

/** Milliseconds since the run began, of a stamp on the shared monotonic clock. */
export function since(began: bigint, at: bigint): At {
  return Number(at - began) / NS_PER_MS
}

/** What a picture shows of a history: the beliefs in between are for the checkers. */
export function timelineOf(history: readonly HistoryEvent[], began: bigint): TimelineEvent[] {
  const tokens = new Map<string, bigint>()
  return history.flatMap((event) => {
    const { at, process: client, op, name, validUntil } = event
    if (event.token !== undefined) tokens.set(`${client}#${op}`, event.token)
    const kind = kindOf(event)
    if (kind === undefined) return []
    // The end of a grant is told apart from that of another by its token.
    const token = tokens.get(`${client}#${op}`)
    return {
      at: since(began, at),
      client,
      name,
      kind,
      ...(token === undefined ? {} : { token: String(token) }),
      ...(validUntil === undefined ? {} : { validUntil: since(began, validUntil) }),
    }
  })
}

function kindOf({ kind, phase }: HistoryEvent): TimelineEvent['kind'] | undefined {
  switch (kind) {
    case 'acquire':
      return phase === 'invoke'
        ? 'waiting'
        : phase === 'ok'
          ? 'acquired'
          : phase === 'queued'
            ? undefined
            : 'failed'
    case 'lost':
      return 'lost'
    case 'downgrade':
      return phase === 'ok' ? 'downgraded' : undefined
    case 'release':
      return phase === 'invoke' ? 'releasing' : phase === 'ok' ? 'released' : undefined
    case 'check':
      return undefined
  }
}
