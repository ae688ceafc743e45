import type { Unknown } from '../../core/contract.ts'
import { unknownForGood } from '../../core/unknown.ts'
import { Alarm, Deadlines } from '../../transport/deadlines.ts'
import { DatabaseError, failed } from './failure.ts'
import { Call, TimeIsUp } from './client.ts'
import type { Driver, Statements } from './client.ts'
import { SCHEMA_VERSION } from './schema.ts'

// Taken once: a user's fake timers must not make time stand still here.
const { performance } = globalThis

export interface CallParts<Connection> {
  readonly driver: Driver<Connection>
  readonly statements: Statements<Connection>
  /** Create the table if it is not there. */
  readonly migrate: boolean
  /** Whether asking again cannot help after this error. */
  readonly isFinal: (code: string) => boolean
}

const TABLE_MISSING = new DatabaseError(
  'The table of locks does not exist, and `migrate: false` forbids to create it',
  'HOLDFAST_SCHEMA',
)
export const CLOSED: DatabaseError = new DatabaseError('The store was closed', 'HOLDFAST_CLOSED')

/** What all calls of a store have in common: a connection, a deadline, a table, and an answer whatever happens. */
export class Calls<Connection> {
  private readonly parts: CallParts<Connection>
  /** Whoever waits for an answer keeps the process alive. */
  private readonly deadlines = new Deadlines({ holdProcess: true })
  private ready = false
  private closed = false

  constructor(parts: CallParts<Connection>) {
    this.parts = parts
  }

  /** Whether the table is known to be there, and nobody has closed the store. */
  get open(): boolean {
    return this.ready && !this.closed
  }

  withLink<T>(
    timeout: number,
    work: (connection: Connection, call: Call) => Promise<T>,
    urgent = false,
  ): Promise<T | Unknown> {
    return this.within(timeout, (call) => {
      call.urgent = urgent
      return this.lend(call, (connection) => work(connection, call))
    })
  }

  /** A connection for a call that is under way. */
  lend<T>(call: Call, work: (connection: Connection) => Promise<T>): Promise<T> {
    return this.parts.driver.borrow(call, async (connection) => {
      if (!this.ready) await this.prepare(connection)
      return work(connection)
    })
  }

  within<T>(timeout: number, work: (call: Call) => Promise<T>): Promise<T | Unknown> {
    const { isFinal } = this.parts
    if (this.closed) return Promise.resolve(unknownForGood(CLOSED))
    return new Promise((resolve) => {
      const call = new Call(performance.now() + timeout)
      const fail = (error: unknown): void => resolve(failed(error, isFinal))
      const deadline = new Alarm(() => {
        call.expire()
        fail(call.obstacle ?? new TimeIsUp())
      })
      this.deadlines.add(deadline, timeout)
      work(call).then(
        (answer) => {
          this.deadlines.remove(deadline)
          resolve(answer)
        },
        (error: unknown) => {
          this.deadlines.remove(deadline)
          fail(error)
        },
      )
    })
  }

  async close(): Promise<void> {
    this.closed = true
    await this.parts.driver.close()
  }

  private async prepare(connection: Connection): Promise<void> {
    const { statements, migrate } = this.parts
    const version = await statements.schemaVersion(connection)
    if (version === undefined) {
      if (!migrate) throw TABLE_MISSING
      await statements.createSchema(connection)
    } else if (version > SCHEMA_VERSION) {
      throw new DatabaseError(
        `The table of locks has version ${version}; this version of holdfast knows ${SCHEMA_VERSION}`,
        'HOLDFAST_SCHEMA',
      )
    }
    this.ready = true
  }
}
