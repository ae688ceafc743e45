import type { LogEntry, LogFacts, LogLevel } from '../../server/index.ts'
import { KEPT, LineFile } from '../../server/line-file.ts'
import { note, plain } from '../table.ts'

export const LOG_LEVELS = ['info', 'warn', 'error'] as const
export const LOG_FORMATS = ['text', 'json'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

export interface LogSettings {
  /** Absent: stderr. */
  readonly file?: string
  /** The least that is written. Default `info`. */
  readonly level?: LogLevel
  /** Default `text`. */
  readonly format?: LogFormat
}

/** What the server says of itself: lines for people or for programs, on stderr or in a file. */
export class ServeLog {
  private readonly least: number
  private readonly format: LogFormat
  private readonly file: LineFile | null
  private failing = false

  constructor({ file, level = 'info', format = 'text' }: LogSettings) {
    this.least = LOG_LEVELS.indexOf(level)
    this.format = format
    this.file = file === undefined ? null : new LineFile(file)
    this.told(this.file?.flush() ?? null)
  }

  /** Beside what the command prints anyway. */
  get isForPeople(): boolean {
    return this.file === null && this.format === 'text'
  }

  /** A server that cannot write its log goes on: it says so on stderr, once, and writes what it kept when it can. */
  readonly write = (entry: LogEntry): void => {
    if (LOG_LEVELS.indexOf(entry.level) < this.least) return
    const line = this.format === 'json' ? JSON.stringify(entry) : inWords(entry)
    if (this.file === null) return this.toStderr(`${line}\n`)
    this.file.add(`${line}\n`)
    this.told(this.file.flush())
  }

  say(level: LogLevel, event: string, message: string, facts: LogFacts = {}): void {
    this.write({ at: new Date().toISOString(), level, event, message, ...facts })
  }

  /** After the file was moved away. */
  reopen(): void {
    if (this.file === null) return
    const failure = this.file.reopen()
    if (failure === null) this.say('info', 'reload', 'The log was opened again.', { what: 'log' })
    else {
      const words = `The old log goes on, because a new one cannot be opened: ${failure.message}`
      this.say('error', 'reload', words, { what: 'log' })
    }
  }

  /** Nobody may read it, and what is not read is kept in memory. */
  private toStderr(line: string): void {
    if (process.stderr.writableLength > KEPT) return
    process.stderr.write(line)
  }

  private told(failure: Error | null): void {
    if (failure !== null && !this.failing) note(`The log cannot be written: ${failure.message}`)
    this.failing = failure !== null
  }
}

function inWords({ at, level, message, request, who, remote, what, code, stack, event }: LogEntry): string {
  const facts = [
    code,
    event === 'refused' ? what : undefined,
    who === undefined ? undefined : `of ${who}`,
    remote === undefined ? undefined : `at ${remote}`,
    request === undefined ? undefined : `request ${request}`,
  ].filter((fact) => fact !== undefined)
  const line = `holdfast: ${at} ${level} ${plain(message)}${facts.length === 0 ? '' : ` (${plain(facts.join(', '))})`}`
  return stack === undefined ? line : `${line}\n${stack}`
}
