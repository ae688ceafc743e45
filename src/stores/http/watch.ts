import { platform } from '#platform'
import { backOff } from '../../core/back-off.ts'
import { unknown } from '../../core/unknown.ts'
import type { Timeout } from '../../platform/platform.ts'

import type { Unknown } from '../../core/contract.ts'
import type { ConnectionOwner } from '../holdfast/server-store.ts'
import type { Live } from './live.ts'
import { post } from './post.ts'
import type { Endpoint } from './post.ts'

const { performance } = globalThis

/** How long a question waits at the server. Proxies close what is silent for half a minute, some of them. */
const WAIT_MS = 20_000
/** For so long none waits there after connections were too few, and how often is asked meanwhile. */
const CROWDED_MS = 30_000
const BRIEFLY_MS = 500
/** And for how much longer its answer is waited for. */
const SLACK_MS = 5000
/** The server listens for a session for fifteen seconds after the last question. */
const FORGOTTEN_MS = 10_000
const AGAIN_MS = { first: 100, longest: 2000 }
/** What is held for a moment only, as most locks are, is worth no question. */
const HELD_MS = 50
const DONE = { kind: 'done' } as const

interface Delivery {
  readonly fresh: boolean
  readonly last: number
  readonly events: readonly unknown[]
}

interface Session {
  readonly name: string
  /** The last event that has come. */
  after: number
  /** When the server last answered; it has listened since then. */
  heardAt: number
  /** A question is under way, or is to be asked again. */
  asking: boolean
  failures: number
}

/**
 * What the server has to tell, fetched by questions that wait there. Only while something is held or waited for: between sections nothing
 * keeps a request open, and with it the process.
 */
export class Listening {
  private readonly endpoint: Endpoint
  private readonly live: Live
  private readonly owner: ConnectionOwner
  private readonly sessions = new Map<string, Session>()
  private readonly control = new AbortController()
  /** Questions that wait at the server now. */
  private readonly waiting = new Set<AbortController>()
  private crowdedUntil = 0
  private timer: Timeout | null = null

  constructor(endpoint: Endpoint, live: Live, owner: ConnectionOwner) {
    this.endpoint = endpoint
    this.live = live
    this.owner = owner
  }

  /** From the answer on the server keeps what it would tell. */
  async begin(name: string, timeout: number): Promise<unknown> {
    const session: Session = { name, after: 0, heardAt: 0, asking: false, failures: 0 }
    const delivery = await this.fetch(session, 0, timeout)
    if ('kind' in delivery) return delivery
    this.take(session, delivery, 'first')
    this.sessions.set(name, session)
    return DONE
  }

  end(name: string): unknown {
    if (this.sessions.delete(name)) {
      const body = { session: name, end: true }
      post(this.endpoint, '/v1/watch', body, AbortSignal.timeout(SLACK_MS)).catch(() => undefined)
    }
    return DONE
  }

  /** The server listens for every session now, as far as it can be told. */
  async ready(timeout: number): Promise<void> {
    const now = performance.now()
    const stale = [...this.sessions.values()].filter(
      ({ asking, heardAt }) => !asking && now - heardAt > FORGOTTEN_MS,
    )
    await Promise.all(
      stale.map(async (session) => {
        const delivery = await this.fetch(session, 0, timeout)
        if (!('kind' in delivery)) this.take(session, delivery)
      }),
    )
  }

  /** Something may be held or waited for now. */
  wake(): void {
    if (!this.live.any || this.control.signal.aborted) return
    if (this.live.waits) return this.askAll()
    if (this.timer !== null) return
    this.timer = platform.setTimeout(() => {
      this.timer = null
      if (this.live.any) this.askAll()
    }, HELD_MS)
    this.timer.unref()
  }

  close(): void {
    this.sessions.clear()
    this.control.abort()
    if (this.timer !== null) platform.clearTimeout(this.timer)
  }

  /** Something more urgent may need the connection, of us or of others. The server keeps what there is to tell. */
  makeRoom(): void {
    this.crowdedUntil = performance.now() + CROWDED_MS
    for (const control of this.waiting) control.abort()
  }

  private askAll(): void {
    for (const session of this.sessions.values()) {
      if (session.asking) continue
      session.asking = true
      this.ask(session).catch(() => undefined)
    }
  }

  /** One question after the other. Never rejects. */
  private async ask(session: Session): Promise<void> {
    while (this.live.any && this.sessions.get(session.name) === session) {
      const since = performance.now()
      const wait = since < this.crowdedUntil ? 0 : WAIT_MS
      const delivery = await this.fetch(session, wait, wait + SLACK_MS)
      // It waited: whatever ended it, this is no server that is away.
      if (performance.now() - since > AGAIN_MS.longest) session.failures = 0
      if (this.sessions.get(session.name) !== session) break
      if (!('kind' in delivery)) {
        this.take(session, delivery)
        if (wait === 0) await this.pause(BRIEFLY_MS)
        // One that does not wait, and has nothing to tell, would be asked without end.
        const waited = delivery.events.length > 0 || performance.now() - since >= BRIEFLY_MS
        // One that has only begun to listen was away, or is another one behind the same address: it will wait next time.
        if (waited || delivery.fresh) session.failures = 0
        if (waited) continue
      }
      // Many clients lose a server at once; they should not all come back at once.
      await this.pause(backOff(session.failures++, AGAIN_MS, platform.random()))
    }
    session.asking = false
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = platform.setTimeout(resolve, ms)
      // Whoever holds a lock and does nothing else may end.
      if (!this.live.waits) timer.unref()
    })
  }

  private async fetch(session: Session, wait: number, timeout: number): Promise<Delivery | Unknown> {
    const { name, after } = session
    const control = new AbortController()
    const stop = (): void => control.abort()
    const timer = platform.setTimeout(stop, timeout)
    timer.unref()
    if (wait > 0) this.waiting.add(control)
    this.control.signal.addEventListener('abort', stop, { once: true })
    if (this.control.signal.aborted) stop()
    const said = await post(this.endpoint, '/v1/watch', { session: name, after, wait }, control.signal)
    platform.clearTimeout(timer)
    this.waiting.delete(control)
    this.control.signal.removeEventListener('abort', stop)
    return deliveryOf(said)
  }

  private take(
    session: Session,
    { fresh, last, events }: Delivery,
    which: 'first' | 'later' = 'later',
  ): void {
    session.after = last
    session.heardAt = performance.now()
    const tell = (event: unknown): void => this.owner.told({ session: session.name, event })
    if (fresh && which === 'later') tell({ kind: 'gap' })
    for (const event of events) tell(event)
  }
}

function deliveryOf(said: unknown): Delivery | Unknown {
  const { kind, fresh, last, events } = said as Partial<Delivery> & { readonly kind?: unknown }
  if (kind === 'unknown') return said as Unknown
  if (typeof fresh === 'boolean' && Number.isSafeInteger(last) && Array.isArray(events))
    return { fresh, last: last as number, events }
  return unknown(new Error('The lock server gave an answer that is none'))
}
