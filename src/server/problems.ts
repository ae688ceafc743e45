/** What a server needs and may be without: its state file, its audit log, the store behind it. */
export type Need = 'state' | 'audit' | 'store'

/** One line of the server's log. */
export interface LogEntry {
  readonly at: string
  readonly level: 'info' | 'error'
  readonly message: string
  /** The number of a request, where there is one. */
  readonly request?: string
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
      if (this.now.delete(need)) this.say('info', SAID[need].good)
      return
    }
    const known = this.now.has(need)
    this.now.set(need, SAID[need].bad)
    if (!known) this.say('error', `${SAID[need].bad}: ${wordsOf(failure)}`)
  }

  /** In words that strangers may read. */
  of(need: Need): string | undefined {
    return this.now.get(need)
  }

  get size(): number {
    return this.now.size
  }

  say(level: LogEntry['level'], message: string, request?: string): void {
    const entry = { at: new Date().toISOString(), level, message }
    this.log(request === undefined ? entry : { ...entry, request })
  }
}

function wordsOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure)
}
