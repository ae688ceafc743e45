import type { Server as HttpServer } from 'node:http'
import type { Server as HttpsServer } from 'node:https'

import type { Audit } from './audit.ts'
import type { ClaimRegistry } from './claim-registry.ts'
import type { Connections } from './connections.ts'
import type { EmbeddedStore } from './embedded/store.ts'
import { Failure } from './failure.ts'
import type { LongPolls } from './long-polls.ts'
import type { CloseServerOptions, Reloaded, ReloadOptions, RunningServer } from './options.ts'
import type { PathLock } from './path-lock.ts'
import type { LockService } from './service.ts'
import type { Sessions } from './sessions.ts'
import type { Streams } from './stream/streams.ts'

export interface RunningParts {
  readonly server: HttpServer | HttpsServer
  readonly connections: Connections
  readonly service: LockService
  readonly sessions: Sessions
  readonly polls: LongPolls
  readonly streams: Streams
  readonly registry: ClaimRegistry
  readonly audit: Audit
  /** The store that ends with the server. */
  readonly own: EmbeddedStore | null
  readonly stateLock: PathLock | null
  readonly reload: (options: ReloadOptions) => readonly Reloaded[]
}

interface Facts {
  readonly url: string
  readonly http: string | null
  readonly address: string
  readonly startsIn: number
}

const GRACE_MS = 1000
const LONGEST_TIMER_MS = 2 ** 30

/** A server from its start to its end. */
export class Running implements RunningServer {
  readonly url: string
  readonly http: string | null
  readonly address: string
  readonly startsIn: number
  readonly ready: Promise<void>
  private readonly parts: RunningParts
  private started: () => void = () => undefined
  private starting: NodeJS.Timeout | undefined
  private closing: Promise<void> | null = null

  constructor(parts: RunningParts, { url, http, address, startsIn }: Facts) {
    this.parts = parts
    this.url = url
    this.http = http
    this.address = address
    this.startsIn = startsIn
    this.ready = new Promise((resolve) => (this.started = resolve))
    if (startsIn === 0) this.started()
    else {
      parts.service.state = { kind: 'starting', until: performance.now() + startsIn }
      this.startAt(performance.now() + startsIn)
    }
  }

  reload(options: ReloadOptions = {}): readonly Reloaded[] {
    return this.parts.reload(options)
  }

  close({ grace = GRACE_MS }: CloseServerOptions = {}): Promise<void> {
    this.closing ??= this.stop(grace)
    return this.closing
  }

  /** In steps: one timer reaches no further than 2^31 milliseconds, and fires at once beyond that. */
  private startAt(moment: number): void {
    const left = moment - performance.now()
    if (left <= 0) return this.start()
    this.starting = setTimeout(() => this.startAt(moment), Math.min(left, LONGEST_TIMER_MS))
  }

  private start(): void {
    this.parts.service.state = { kind: 'ready' }
    this.started()
  }

  private async stop(grace: number): Promise<void> {
    const { server, connections, service, sessions, polls, streams, registry, audit, own, stateLock } =
      this.parts
    clearTimeout(this.starting)
    this.started()
    service.state = { kind: 'stopping' }
    const ended = new Promise<void>((resolve) => void server.close(() => resolve()))
    const keepPlaces = own?.remembers === true
    if (keepPlaces) sessions.keepPlaces()
    polls.stop(new Failure('STOPPING', 'The lock server is stopping. Ask again soon.', { retryAfter: 1 }), {
      keepPlaces,
    })
    for (const end of service.onStop) end()
    streams.endAll()
    server.closeIdleConnections()
    const timer = setTimeout(() => connections.destroyAll(), grace)
    await ended
    clearTimeout(timer)
    await polls.close(grace)
    sessions.close()
    registry.close()
    await own?.close(registry.makerOf)
    stateLock?.release()
    audit.close()
  }
}
