import type { ClaimRef, ClaimRequest } from '../../core/contract.ts'
import type { AtOnce } from '../sql/client.ts'
import type { KnownNames } from '../sql/known-names.ts'
import type { Statement, Values } from '../sql/statement.ts'
import { valuesOf } from './client.ts'
import type { SqliteDriver } from './client.ts'

// Taken once: a user's fake timers must not reach locks.
const { Date } = globalThis

export interface AtOnceSql {
  readonly takeAt: Statement
  readonly free: Statement
}

/** The clock that SQLite's statements read, and as it counts: in whole milliseconds. */
const machineClock = (): number => Date.now() * 1000

/**
 * Takes and frees names in the caller's own time: a promise for each step costs a third of the step. Nor does a claim let
 * SQLite tell the token: the process says which one it will be, from the last that it has seen and the clock, and the
 * statement does nothing if it is another. That is so about once in a hundred times, at the turn of a millisecond, and
 * after others have had the name.
 */
export class SqliteAtOnce implements AtOnce {
  private readonly driver: SqliteDriver
  private readonly sql: AtOnceSql
  private readonly known: KnownNames
  private readonly clock: () => number

  constructor(driver: SqliteDriver, sql: AtOnceSql, known: KnownNames, clock: () => number = machineClock) {
    this.driver = driver
    this.sql = sql
    this.known = known
    this.clock = clock
  }

  take({ name, id, owner, weight, capacity, tokens, ttl }: ClaimRequest): bigint | undefined {
    const last = this.known.fenceOf(name)
    if (last === 0 || this.driver.isLong()) return undefined
    const token = Math.max(last + 1, this.clock())
    const fence = token + tokens - 1
    const values = { name, id, owner, weight, capacity, tokens, token, fence, ttl: ttl * 1000 }
    const taken = this.changes(this.sql.takeAt, values)
    // After a failure others may want it, too: not worth another try until it was taken in the other way.
    this.known.add(name, taken ? fence : 0)
    return taken ? BigInt(token) : undefined
  }

  free({ name, id }: ClaimRef): boolean {
    return !this.driver.isLong() && this.changes(this.sql.free, { name, id })
  }

  /** Whatever goes wrong here will go wrong again in the other way, which tells it. */
  private changes({ text, params }: Statement, values: Values): boolean {
    try {
      return this.driver.change(text, valuesOf(params, values)) > 0
    } catch {
      return false
    }
  }
}
