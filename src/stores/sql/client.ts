/** What a driver has to offer to the stores that speak SQL. */

import type { Columns, Row } from './row.ts'
import type { ClaimRef, ClaimRequest } from '../../core/contract.ts'
import type { Notice } from '../../core/claim-queue.ts'

/** One call of the store, and whether its time is over. Nothing is sent for it any more then. */
export class Call {
  expired = false
  /** When its time is over, by `performance.now()`. */
  readonly until: number
  /** Statements on their way. */
  sending = 0
  /** Somebody holds a lease by it: it does not stand in line behind those who only want one. */
  urgent = false
  /** Ends what is under way: a connection that still owes an answer is no use to anybody else. */
  onExpire: (() => void) | null = null
  /** What it waits for, if that is known: the reason to tell when its time is over. */
  obstacle: Error | null = null

  constructor(until: number = Infinity) {
    this.until = until
  }

  expire(): void {
    this.expired = true
    this.onExpire?.()
  }

  /** Sends a statement, and knows that its answer is due until it is there. */
  async send<T>(statement: () => Promise<T>): Promise<T> {
    if (this.expired) throw new TimeIsUp()
    this.sending++
    try {
      return await statement()
    } finally {
      this.sending--
    }
  }
}

export class TimeIsUp extends Error {
  constructor() {
    super('The server did not answer in time')
  }
}

/** Lends connections, each for a moment. */
export interface Driver<Connection> {
  /** Runs the work with a connection, which goes back afterwards, or is closed if the call's time ran out. */
  borrow<T>(call: Call, work: (connection: Connection) => Promise<T>): Promise<T>
  /** Closes what the driver itself opened. */
  close(): Promise<void>
}

export interface Taken {
  /** The first token, if the claim was granted. */
  readonly token?: bigint
  /** The name was new to the table. */
  readonly created?: true
  /** Otherwise the row that is in the way, where the server tells it in the same breath. */
  readonly row?: Row
}

/** For a database that answers before the next line of JavaScript: the two steps that are most of all. */
export interface AtOnce {
  /** As `Statements.take`: the first token. Undefined: not so simple, or not possible just now. */
  take(request: ClaimRequest): bigint | undefined
  /** As `Statements.free`. */
  free(claim: ClaimRef): boolean
}

/** What a step does besides what it writes to the row. */
export interface Effects {
  readonly notices: readonly Notice[]
  /** Claims of others that lose their hold by it. While one of them guards a transaction, the step is not written. */
  readonly ended: readonly string[]
}

/** A step that changes nothing but the queue. */
export interface Sign {
  readonly row: Row
  readonly next: Columns
}

/** Every one of these is one statement, autocommitted, and so happens as a whole or not at all. */
export interface Statements<Connection> {
  /** Takes a name that nobody has or waits for. */
  take(connection: Connection, request: ClaimRequest): Promise<Taken>
  /** Frees a name that the claim has and nobody waits for; false when that is not how it is. */
  free(connection: Connection, claim: ClaimRef): Promise<boolean>
  /** Renews claims that stand in the first holder's columns: of those that do, whether somebody waits behind. */
  keep(
    connection: Connection,
    claims: readonly ClaimRef[],
    ttl: number,
  ): Promise<ReadonlyMap<string, boolean>>
  read(connection: Connection, names: readonly string[]): Promise<readonly Row[]>
  /** Writes a step over the row that it was computed from; false when the row has changed since. */
  swap(connection: Connection, row: Row, next: Columns, effects: Effects): Promise<boolean>
  /** As `swap` for many names at once, where the queue is all that changes: how many were written. */
  swapQueues?(connection: Connection, signs: readonly Sign[]): Promise<number>
  /** Makes sure that the name has a row. */
  create(connection: Connection, name: string): Promise<void>
  /** Rows that may be in use, in the order of their names' bytes, after the cursor. */
  list(connection: Connection, prefix: string, cursor: string, limit: number): Promise<readonly Row[]>
  /** Rows, in use or not, in the order of their names' bytes, after the cursor. */
  page(connection: Connection, cursor: string, limit: number): Promise<readonly Row[]>
  /** Forgets those of the names that are not in use, and were not granted for that many milliseconds: how many. */
  drop(connection: Connection, names: readonly string[], idle: number): Promise<number>
  /** The version of the table that is there; undefined when none is. */
  schemaVersion(connection: Connection): Promise<number | undefined>
  createSchema(connection: Connection): Promise<void>
}
