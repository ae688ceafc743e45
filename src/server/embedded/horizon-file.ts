import { readFileSync, statSync } from 'node:fs'

import { InvalidArgumentError } from '../../core/errors.ts'
import { writeDurably, writeDurablyNow } from './durable-file.ts'

/**
 * What a server with an embedded store has to remember beyond its own life, and nothing else: until when somebody may
 * believe in a lease of its, and a token that it has never reached.
 */
export interface HorizonRecord {
  /** Which run of a server wrote it. */
  readonly writer: string
  /** The machine's boot, where it can be told. Within one boot, uptime counts, which nobody can set. */
  readonly boot: string | null
  /** Milliseconds: the furthest lease end as uptime and as wall time. */
  readonly uptime: number
  readonly wall: number
  /** Milliseconds from the writing of this to that end: no wait need ever be longer. */
  readonly span: number
  readonly token: number
  /** After a planned stop: the digest of the file with all claims that there were then. */
  readonly claims?: string
}

/** Two servers with one file would each forget what the other promised. */
class ForeignWriterError extends Error {
  constructor(path: string) {
    super(`${path} is written by another lock server. Give each server a state file of its own.`)
    this.name = 'ForeignWriterError'
  }
}

export class HorizonFile {
  readonly path: string
  private readonly writer: string
  /** What we expect to find, word for word: what we read, what we wrote, and what we may have written. */
  private expected: readonly string[] = []

  constructor(path: string, writer: string) {
    this.path = path
    this.writer = writer
  }

  /** At once: a server that listens must know its past before it hears the first request. */
  read(): HorizonRecord | null {
    // A pipe would be waited for, without an end.
    if (statSync(this.path, { throwIfNoEntry: false })?.isFile() === false) throw this.noStateFile()
    const text = this.load()
    if (text === null) return null
    const record = parse(text)
    if (record === null) throw this.noStateFile()
    this.expected = [text]
    return record
  }

  /** Resolves when the record would survive a power cut. */
  async write(record: Omit<HorizonRecord, 'writer'>): Promise<void> {
    const text = this.prepare(record)
    await writeDurably(this.path, text)
    this.expected = [text]
  }

  /** The same, for a server that hears no request before it is done. */
  writeNow(record: Omit<HorizonRecord, 'writer'>): void {
    const text = this.prepare(record)
    writeDurablyNow(this.path, text)
    this.expected = [text]
  }

  private prepare(record: Omit<HorizonRecord, 'writer'>): string {
    const there = this.load()
    if (there !== null && !this.expected.includes(there)) throw new ForeignWriterError(this.path)
    const text = `${JSON.stringify({ writer: this.writer, ...record })}\n`
    this.expected = there === null ? [text] : [there, text]
    return text
  }

  private noStateFile(): Error {
    return new InvalidArgumentError(
      `${this.path} is not a state file of a lock server. Remove it only if every lease of the former run has ended.`,
      { argument: 'state' },
    )
  }

  private load(): string | null {
    try {
      return readFileSync(this.path, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }
}

function parse(text: string): HorizonRecord | null {
  try {
    const record = JSON.parse(text) as Record<string, unknown> | null
    const { writer, boot, uptime, wall, span, token, claims } = record ?? {}
    if (claims !== undefined && typeof claims !== 'string') return null
    if (typeof writer !== 'string' || (boot !== null && typeof boot !== 'string')) return null
    const numbers = [uptime, wall, span, token]
    return numbers.every(Number.isFinite) ? (record as unknown as HorizonRecord) : null
  } catch {
    return null
  }
}
