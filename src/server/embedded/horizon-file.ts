import { readFileSync } from 'node:fs'
import { mkdir, open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'

import { InvalidArgumentError } from '../../core/errors.ts'

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
    const text = this.load()
    if (text === null) return null
    const record = parse(text)
    if (record === null) {
      throw new InvalidArgumentError(
        `${this.path} is not a state file of a lock server. Remove it only if every lease of the former run has ended.`,
        { argument: 'state' },
      )
    }
    this.expected = [text]
    return record
  }

  /** Resolves when the record would survive a power cut. */
  async write(record: Omit<HorizonRecord, 'writer'>): Promise<void> {
    const there = this.load()
    if (there !== null && !this.expected.includes(there)) throw new ForeignWriterError(this.path)
    const text = `${JSON.stringify({ writer: this.writer, ...record })}\n`
    this.expected = there === null ? [text] : [there, text]
    const folder = dirname(this.path)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const fresh = `${this.path}.new`
    await withFile(fresh, 'w', async (file) => {
      await file.writeFile(text)
      await file.sync()
    })
    await rename(fresh, this.path)
    // The name is part of the folder, and has to reach the disk like the contents.
    if (process.platform !== 'win32') await withFile(folder, 'r', (file) => file.sync())
    this.expected = [text]
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

type File = Awaited<ReturnType<typeof open>>

async function withFile(path: string, flags: string, use: (file: File) => Promise<void>): Promise<void> {
  const file = await open(path, flags, 0o600)
  try {
    await use(file)
  } finally {
    await file.close()
  }
}

function parse(text: string): HorizonRecord | null {
  try {
    const record = JSON.parse(text) as Record<string, unknown> | null
    const { writer, boot, uptime, wall, span, token } = record ?? {}
    if (typeof writer !== 'string' || (boot !== null && typeof boot !== 'string')) return null
    const numbers = [uptime, wall, span, token]
    return numbers.every(Number.isFinite) ? (record as unknown as HorizonRecord) : null
  } catch {
    return null
  }
}
