import type { Unknown } from '../../core/contract.ts'
import { isSpent } from '../../core/queue-state.ts'
import { InvalidArgumentError, StoreUnavailableError } from '../../core/errors.ts'
import { codeOf } from './failure.ts'
import type { Statements } from './client.ts'
import { load } from './row.ts'
import type { Row } from './row.ts'

// Taken once: a user's fake timers must not reach locks.
const { performance, setTimeout } = globalThis

export interface TidyOptions {
  /** Milliseconds after its last grant from which on a name is forgotten. Default: what the store was made with. */
  readonly idle?: number | undefined
}

export interface Tidied {
  /** Rows that were looked at. */
  readonly looked: number
  /** Names that were forgotten. */
  readonly removed: number
}

export interface TidyTools<Connection> {
  readonly kind: string
  readonly statements: Pick<Statements<Connection>, 'page' | 'drop'>
  /** How much longer than its patience a waiter is kept. */
  readonly slack: () => number
  readonly call: <T>(timeout: number, work: (connection: Connection) => Promise<T>) => Promise<T | Unknown>
  /** Writes down that what has run out on a name has. */
  readonly settle: (connection: Connection, row: Row) => Promise<unknown>
}

/** An hour: a name that is forgotten gets its next token from the clock alone, which must not be put back that far. */
const IDLE_MS = 3_600_000
/** Few enough to be over in a moment, on which nobody waits: a statement over the whole table locks every row of it. */
const PAGE = 200
const BITE = 100
/** A page is looked through each time that many names are new, so twice as many rows are seen as are made. */
const EVERY = 100
const TIMEOUT_MS = 5000

export function checkIdle(argument: string, idle: number = IDLE_MS): number {
  if (typeof idle === 'number' && idle >= 0) return idle
  throw new InvalidArgumentError(`${argument} must be milliseconds, or Infinity`, { argument })
}

/**
 * Forgets names that nobody has used for long, a few at a time, whenever new ones come: a program that uses every name
 * once leaves no more behind than it uses in that time. By chance, rather than by count: most processes may be short.
 */
export class Tidying<Connection> {
  private readonly tools: TidyTools<Connection>
  private readonly idle: number
  private cursor: string | undefined
  private busy = false
  /** The server does not let us. */
  private refused = false

  constructor(tools: TidyTools<Connection>, idle: number) {
    this.tools = tools
    this.idle = idle
  }

  /** To be called for each name that is new to the table. */
  madeRow(name: string): void {
    if (this.idle === Infinity || this.busy || this.refused || Math.random() * EVERY >= 1) return
    this.busy = true
    // From the beginning or from here: names that count up leave their oldest there, others anywhere.
    this.cursor ??= Math.random() < 0.5 ? '' : name
    this.page(this.cursor, this.idle)
      .then((page) => {
        if ('kind' in page) this.refused = isRefused(page)
        else this.cursor = page.next ?? ''
      })
      .catch(() => {})
      .finally(() => (this.busy = false))
  }

  /** Looks through the whole table. */
  async all(idle: number): Promise<Tidied> {
    let [looked, removed] = [0, 0]
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const began = performance.now()
      const page: Page | Unknown = await this.page(cursor, idle)
      if ('kind' in page) throw this.unavailable(page, removed)
      looked += page.looked
      removed += page.removed
      cursor = page.next
      // Half of the time is everybody else's.
      const pause = performance.now() - began
      if (cursor !== undefined) await new Promise((resolve) => setTimeout(resolve, pause))
    }
    return { looked, removed }
  }

  private page(cursor: string, idle: number): Promise<Page | Unknown> {
    const { call, statements, settle } = this.tools
    const until = performance.now() + TIMEOUT_MS / 2
    return call(TIMEOUT_MS, async (connection) => {
      const rows = await statements.page(connection, cursor, PAGE)
      const spent: string[] = []
      let looked = 0
      for (const row of rows) {
        looked++
        if (!this.isSpent(row, idle)) continue
        if (row.claim !== null || row.queue !== null) await settle(connection, row)
        spent.push(row.name)
        // What the dead have left takes a statement each: where the server is slow, or far away, a part of the page is enough.
        if (performance.now() > until) break
      }
      let removed = 0
      for (let from = 0; from < spent.length; from += BITE) {
        removed += await statements.drop(connection, spent.slice(from, from + BITE), idle)
      }
      const last = looked < PAGE && looked === rows.length ? undefined : rows[looked - 1]?.name
      return { looked, removed, next: last }
    })
  }

  /** Whatever there was of it is over for long, also what a process that died has left. */
  private isSpent(row: Row, idle: number): boolean {
    const before = row.now - idle * 1000
    return (
      row.fence < before &&
      isSpent(load(row, this.tools.slack()).state, { ms: before / 1000, micros: before })
    )
  }

  private unavailable({ cause }: Unknown, removed: number): StoreUnavailableError {
    const why = cause instanceof Error ? cause.message : 'no answer'
    return new StoreUnavailableError(
      `The table could not be tidied: ${why}. ${removed} names were forgotten before`,
      {
        store: this.tools.kind,
        cause,
      },
    )
  }
}

/** Not what is said about one connection, or for a while: that it is in a transaction of somebody else's. */
const isRefused = ({ cause, retryable }: Unknown): boolean =>
  retryable === false && !codeOf(cause).startsWith('HOLDFAST_')

interface Page {
  readonly looked: number
  readonly removed: number
  /** Where to go on; undefined at the end. */
  readonly next: string | undefined
}
