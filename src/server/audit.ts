import { createHmac, randomBytes } from 'node:crypto'
import { createWriteStream, openSync } from 'node:fs'
import type { WriteStream } from 'node:fs'

import type { Caller } from './caller.ts'

/** One line of the audit log. */
export interface AuditEntry {
  readonly at: string
  readonly request: string
  readonly who: string
  readonly remote: string
  readonly what: string
  readonly name?: string
  readonly result: string
  readonly token?: string
  /** A claim's id, unrecognisable, but the same in every line of one run. */
  readonly claim?: string
  readonly reason?: string
  readonly count?: number
}

export interface AuditFacts {
  readonly name?: string
  readonly result: string
  readonly token?: bigint
  readonly id?: string
  readonly reason?: string
  readonly count?: number
}

export type AuditSink = (entry: AuditEntry) => void

/** Who did what to which lock. Append-only lines of JSON, without any secret. */
export class Audit {
  /** Why nothing can be recorded now, if so. */
  failure: Error | null = null
  private readonly sink: AuditSink | null
  private readonly stream: WriteStream | null
  // Of this run only: an id must not be checkable against an old log.
  private readonly key = randomBytes(32)

  constructor(target: string | AuditSink | undefined) {
    if (typeof target !== 'string') {
      this.stream = null
      this.sink = target ?? null
      return
    }
    this.stream = this.opened(target)
    this.sink = (entry) => void this.stream?.write(`${JSON.stringify(entry)}\n`)
  }

  /** At once, so that the first request knows already whether it can be recorded. */
  private opened(path: string): WriteStream | null {
    try {
      const stream = createWriteStream(path, { fd: openSync(path, 'a', 0o600) })
      stream.on('error', (error) => (this.failure = error))
      return stream
    } catch (error) {
      this.failure = error as Error
      return null
    }
  }

  get on(): boolean {
    return this.sink !== null
  }

  record({ principal, remote, request }: Caller, what: string, facts: AuditFacts): void {
    if (this.sink === null) return
    const { id, token, ...rest } = facts
    this.sink({
      at: new Date().toISOString(),
      request,
      who: principal.name,
      remote,
      what,
      ...rest,
      ...(token === undefined ? {} : { token: String(token) }),
      ...(id === undefined ? {} : { claim: this.disguise(id) }),
    })
  }

  async close(): Promise<void> {
    const { stream } = this
    if (stream === null || stream.destroyed) return
    await new Promise<void>((resolve) => {
      stream.once('close', resolve)
      stream.end()
    })
  }

  private disguise(id: string): string {
    return createHmac('sha256', this.key).update(id).digest('base64url').slice(0, 16)
  }
}
