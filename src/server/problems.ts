/** What a server needs and may be without: its state file, its audit log, the store behind it. */
export type Need = 'state' | 'audit' | 'store'

export type LogLevel = 'info' | 'warn' | 'error'

/** One line of the server's log. */
export interface LogEntry extends LogFacts {
  readonly at: string
  readonly level: LogLevel
  /** What kind of line it is, for programs: `refused`, `internal`, `need`, `reload`, and what the command adds. */
  readonly event: string
  readonly message: string
}

/** What a line is about, as far as there is such a thing. */
export interface LogFacts {
  /** The number of a request or of a session. */
  readonly request?: string
  readonly who?: string
  readonly remote?: string
  /** What was asked for. */
  readonly what?: string
  /** Of a refusal. */
  readonly code?: string
  readonly stack?: string
}

export type ServerLog = (entry: LogEntry) => void

const SAID: Readonly<Record<Need, { readonly bad: string; readonly good: string }>> = {
  state: { bad: 'The state file cannot be written', good: 'The state file can be written again' },
  audit: { bad: 'The audit log cannot be written', good: 'The audit log can be written again' },
  store: {
    bad: 'The store behind the lock server does not answer',
    good: 'The store behind the lock server answers again',
  },
}

/** What is wrong now. Said once when it begins and once when it ends, not every time somebody meets it. */
export class Problems {
  private readonly now = new Map<Need, string>()
  private readonly log: ServerLog

  constructor(log: ServerLog = () => undefined) {
    this.log = log
  }

  /** Null when all is well. */
  note(need: Need, failure: unknown): void {
    if (failure === null) {
      if (this.now.delete(need)) this.say('info', 'need', SAID[need].good, { what: need })
      return
    }
    const known = this.now.has(need)
    this.now.set(need, SAID[need].bad)
    if (!known) this.say('error', 'need', `${SAID[need].bad}: ${wordsOf(failure)}`, { what: need })
  }

  /** In words that strangers may read. */
  of(need: Need): string | undefined {
    return this.now.get(need)
  }

  get size(): number {
    return this.now.size
  }

  /** Something that should not happen. */
  fault(error: unknown, request: string): void {
    const stack = error instanceof Error ? error.stack : undefined
    this.say('error', 'internal', wordsOf(error), { request, ...(stack === undefined ? {} : { stack }) })
  }

  say(level: LogLevel, event: string, message: string, facts: LogFacts = {}): void {
    this.log({ at: new Date().toISOString(), level, event, message, ...facts })
  }
}

function wordsOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure)
}
