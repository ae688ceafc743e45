import { createHmac, randomBytes } from 'node:crypto'

import type { Caller } from './caller.ts'
import { LineFile } from './line-file.ts'
import type { Problems } from './problems.ts'
import { Principal } from './rights.ts'

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

/** Of what the server does by itself. */
const SERVER: Caller = { principal: new Principal('lock server', [], []), remote: '-', request: '-' }

/** Who did what to which lock. Append-only lines of JSON, without any secret. */
export class Audit {
  readonly on: boolean
  private readonly sink: AuditSink | null
  private readonly file: LineFile | null
  private readonly problems: Problems
  // Of this run only: an id must not be checkable against an old log.
  private readonly key = randomBytes(32)
  private scheduled = false
  /** Lines for which there was no room. */
  private missed = 0

  constructor(target: string | AuditSink | undefined, problems: Problems) {
    this.on = target !== undefined
    this.problems = problems
    this.file = typeof target === 'string' ? new LineFile(target) : null
    this.sink = typeof target === 'string' ? null : (target ?? null)
    // At once, so that it is known before the first request whether anything can be recorded.
    this.recordNow(SERVER, 'start', { result: 'recording' })
  }

  /** Soon: the lines of one turn of the loop go to the file together. */
  record(caller: Caller, what: string, facts: AuditFacts): void {
    if (!this.on) return
    this.add(caller, what, facts)
    if (this.scheduled || this.file === null) return
    this.scheduled = true
    setImmediate(() => this.flush())
  }

  /** Of what the server does by itself. */
  recordOwn(what: string, facts: AuditFacts): void {
    this.record(SERVER, what, facts)
  }

  /** Whether it is recorded, now. */
  recordNow(caller: Caller, what: string, facts: AuditFacts): boolean {
    if (!this.on) return false
    return this.add(caller, what, facts) && this.flush()
  }

  /** Whether everything so far is in the file, and there is room for more. Of a sink nobody knows before. */
  flush(): boolean {
    this.scheduled = false
    if (this.file === null) return true
    const failure = this.file.flush() ?? this.tellMissed(this.file)
    this.problems.note('audit', failure)
    return failure === null
  }

  /** The first line that finds room again says how many did not. */
  private tellMissed(file: LineFile): Error | null {
    if (this.missed === 0) return null
    const { missed } = this
    this.missed = 0
    this.add(SERVER, 'missed', { result: 'not recorded: there was no room', count: missed })
    return file.flush()
  }

  /** After the file was moved away. Null when there is a new one; undefined when there is no file at all. */
  reopen(): Error | null | undefined {
    const failure = this.file?.reopen()
    this.flush()
    return failure
  }

  close(): void {
    this.file?.close()
  }

  private add({ principal, remote, request }: Caller, what: string, facts: AuditFacts): boolean {
    const { id, token, ...rest } = facts
    const entry: AuditEntry = {
      at: new Date().toISOString(),
      request,
      who: principal.name,
      remote,
      what,
      ...rest,
      ...(token === undefined ? {} : { token: String(token) }),
      ...(id === undefined ? {} : { claim: this.disguise(id) }),
    }
    if (this.file !== null) {
      const added = this.file.add(`${JSON.stringify(entry)}\n`)
      if (!added) this.missed++
      return added
    }
    try {
      this.sink?.(entry)
      this.problems.note('audit', null)
      return true
    } catch (error) {
      this.problems.note('audit', error)
      return false
    }
  }

  private disguise(id: string): string {
    return createHmac('sha256', this.key).update(id).digest('base64url').slice(0, 16)
  }
}
