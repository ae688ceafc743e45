import type { Unknown } from '../../core/contract.ts'
import { isUnknown } from '../../core/unknown.ts'
import type { Client } from './client.ts'
import { tellTime } from './commands.ts'
import type { Descriptions } from './inspect.ts'
import type { Grants } from './grants.ts'
import type { Keys } from './keys.ts'
import type { Connection } from './connection.ts'
import { asItIs } from './pending.ts'
import type { Read, Terms } from './pending.ts'
import { isError } from './protocol.ts'
import type { Reply } from './protocol.ts'
import type { Rivals } from './rivals.ts'
import type { ServerClock } from './server-clock.ts'

// Taken once: a user's fake timers must not move a lease.
const { performance } = globalThis

/** For how long a reading of the server's clock is good; server-clock.ts counts on it. */
const TIME_HOLDS_MS = 250

/** What every operation works with. */
export interface StoreContext {
  readonly client: Client
  readonly keys: Keys
  readonly clock: ServerClock
  readonly grants: Grants
  readonly descriptions: Descriptions
  readonly rivals: Rivals
}

/** One operation's connection and the time by which it has to be done. */
export class Exchange<F = Unknown> implements Terms<F> {
  readonly connection: Connection
  readonly deadline: number
  readonly failed: (failure: Unknown) => F
  now: number
  private readonly context: StoreContext
  /** Nothing was sent yet: `now` has just been read. */
  private fresh = true

  private constructor(context: StoreContext, connection: Connection, { deadline, now, failed }: Terms<F>) {
    this.context = context
    this.connection = connection
    this.deadline = deadline
    this.failed = failed
    this.now = now
  }

  static begin<F>(
    context: StoreContext,
    timeout: number,
    failed: (failure: Unknown) => F,
  ): Exchange<F> | Promise<Exchange<F> | F> {
    const now = performance.now()
    const deadline = now + timeout
    const { connection } = context.client
    if (connection !== null) return new Exchange(context, connection, { deadline, now, failed })
    return context.client
      .connect(timeout)
      .then((outcome) =>
        isUnknown(outcome)
          ? failed(outcome)
          : new Exchange(context, outcome, { deadline, now: performance.now(), failed }),
      )
  }

  /** One round trip. The first error among the replies is the answer to all. */
  send<T>(commands: string, replies: number, read: Read<T | F>): Promise<T | F> {
    this.readClock()
    return this.connection.ask(commands, replies, this, read)
  }

  /** One round trip that sets a ttl. Without an answer if the server's clock was not right. */
  sendTimed<T>(commands: string, replies: number, read: Read<T | F>): Promise<T | F> {
    this.readClock()
    if (this.now - this.connection.timeAskedAt > TIME_HOLDS_MS) this.askTheTime(this.now)
    return this.connection.ask(commands, replies, this, read)
  }

  private readClock(): void {
    if (this.fresh) this.fresh = false
    else this.now = performance.now()
  }

  /** In front of what follows: if the answer is no good, that is unknown together with everything under way. */
  private askTheTime(sentAt: number): void {
    const { connection, context } = this
    connection.timeAskedAt = sentAt
    // Without an end of its own: whatever is answered after it must not be believed before it.
    connection.tell(
      tellTime(context.keys),
      1,
      { deadline: Infinity, now: sentAt, failed: asItIs },
      ([time]) => {
        const doubt = this.doubtAbout(time as Reply, sentAt)
        // The next connection finds out which clock it is, and begins anew if it is another one.
        if (doubt !== undefined) connection.end(new Error(`memcached ${doubt}`))
      },
    )
  }

  private doubtAbout(time: Reply, sentAt: number): string | undefined {
    if (isError(time)) return 'did not tell the time'
    if (time.code !== 'HD') return 'was emptied, or has evicted what is in use'
    const reading = this.context.clock.read(Number(time.flag('t')), sentAt, performance.now())
    return reading === 'late' ? 'stood still, and counts time from before that' : undefined
  }
}
