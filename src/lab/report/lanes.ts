import type { At, TimelineEvent } from '../record.ts'

/** A stretch of a client's time. */
export interface Span {
  readonly kind: 'waiting' | 'held' | 'releasing'
  readonly from: At
  readonly to: At
  readonly name: string
  readonly token?: string
  /** How it ended: `open` when the run ended first. */
  readonly end: 'acquired' | 'failed' | 'releasing' | 'released' | 'lost' | 'open'
  readonly renewals: readonly At[]
}

/** A moment of a client's time. */
export interface Mark {
  readonly kind: 'lost' | 'at-risk' | 'write' | 'write-refused'
  readonly at: At
  readonly token?: string
  readonly detail?: string
}

export interface Lane {
  readonly client: string
  readonly spans: readonly Span[]
  readonly marks: readonly Mark[]
}

interface Hold {
  readonly from: At
  readonly name: string
  readonly token: string
  readonly renewals: At[]
  validUntil: At
}

/** A client's events as stretches of time that can be drawn. */
export function laneOf(client: string, events: readonly TimelineEvent[], end: At): Lane {
  const reader = new LaneReader(end)
  for (const event of events) if (event.client === client) reader.read(event)
  return { client, ...reader.finish() }
}

class LaneReader {
  private readonly end: At
  private readonly spans: Span[] = []
  private readonly marks: Mark[] = []
  /** By name: since when somebody waits. A client may have several tasks that do. */
  private readonly waiting = new Map<string, At[]>()
  private readonly holds = new Map<string, Hold>()
  private readonly releasing = new Map<string, { readonly from: At; readonly name: string }>()

  constructor(end: At) {
    this.end = end
  }

  read(event: TimelineEvent): void {
    const { at, name, kind } = event
    switch (kind) {
      case 'waiting':
        this.waiting.set(name, [...(this.waiting.get(name) ?? []), at])
        break
      case 'acquired':
        this.stopsWaiting(event, 'acquired')
        this.takes(event)
        break
      case 'failed':
        this.stopsWaiting(event, 'failed')
        break
      case 'renewed':
        this.renews(event)
        break
      case 'releasing':
        this.ends(event, 'releasing')
        break
      case 'released':
        this.ends(event, 'released')
        break
      case 'lost':
        this.ends(event, 'lost')
        this.mark('lost', event)
        break
      case 'downgraded':
        // It is held as before, beside others.
        break
      case 'at-risk':
      case 'write':
      case 'write-refused':
        this.mark(kind, event)
        break
    }
  }

  finish(): Omit<Lane, 'client'> {
    for (const [name, since] of this.waiting) {
      for (const from of since)
        this.spans.push({ kind: 'waiting', from, to: this.end, name, end: 'open', renewals: [] })
    }
    for (const { from, name, token, renewals, validUntil } of this.holds.values()) {
      const to = Math.max(from, Math.min(this.end, validUntil))
      this.spans.push({ kind: 'held', from, to, name, token, end: 'open', renewals })
    }
    return { spans: this.spans, marks: this.marks }
  }

  private stopsWaiting({ at, name }: TimelineEvent, end: 'acquired' | 'failed'): void {
    const [from, ...others] = this.waiting.get(name) ?? []
    this.waiting.set(name, others)
    if (from !== undefined) this.spans.push({ kind: 'waiting', from, to: at, name, end, renewals: [] })
  }

  private takes({ at, name, token = '', validUntil = Infinity }: TimelineEvent): void {
    this.holds.set(key(name, token), { from: at, name, token, renewals: [], validUntil })
  }

  private renews({ at, name, token, validUntil }: TimelineEvent): void {
    const hold = this.holdOf(name, token)
    if (hold === undefined) return
    hold.renewals.push(at)
    hold.validUntil = validUntil ?? hold.validUntil
  }

  private ends({ at, name, token }: TimelineEvent, end: 'releasing' | 'released' | 'lost'): void {
    const hold = this.holdOf(name, token)
    if (hold !== undefined) {
      this.holds.delete(key(name, hold.token))
      // Who stood still hears of the loss when it wakes up; its belief ended before, by its own clock.
      const to = end === 'lost' ? Math.max(hold.from, Math.min(at, hold.validUntil)) : at
      this.spans.push({
        kind: 'held',
        from: hold.from,
        to,
        name,
        token: hold.token,
        end,
        renewals: hold.renewals,
      })
    }
    const at2 = key(name, hold?.token ?? token ?? '')
    if (end === 'releasing') this.releasing.set(at2, { from: at, name })
    const begun = this.releasing.get(at2)
    if (end === 'releasing' || begun === undefined) return
    this.releasing.delete(at2)
    this.spans.push({ kind: 'releasing', from: begun.from, to: at, name, end, renewals: [] })
  }

  /** With its token, or, where an event has none, the latest of the name. */
  private holdOf(name: string, token: string | undefined): Hold | undefined {
    if (token !== undefined) return this.holds.get(key(name, token))
    return [...this.holds.values()].findLast((hold) => hold.name === name)
  }

  private mark(kind: Mark['kind'], { at, token, detail }: TimelineEvent): void {
    this.marks.push({
      kind,
      at,
      ...(token === undefined ? {} : { token }),
      ...(detail === undefined ? {} : { detail }),
    })
  }
}

const key = (name: string, token: string): string => `${name}\n${token}`
