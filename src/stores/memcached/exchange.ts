import type { Unknown } from '../../core/contract.ts'
import type { Client } from './client.ts'
import { tellTime } from './commands.ts'
import { isUnknown, refused, unknown } from './failure.ts'
import type { Grants } from './grants.ts'
import type { Keys } from './keys.ts'
import type { Link } from './link.ts'
import { codeOf, flagOf, isError } from './protocol.ts'
import type { Reply } from './protocol.ts'
import type { ServerClock } from './server-clock.ts'

// Taken once: a user's fake timers must not move a lease.
const { performance } = globalThis

/** What every operation works with. */
export interface Desk {
  readonly client: Client
  readonly keys: Keys
  readonly clock: ServerClock
  readonly grants: Grants
}

/** One operation's connection and the time by which it has to be done. */
export class Exchange {
  readonly link: Link
  private readonly desk: Desk
  private readonly deadline: number

  private constructor(desk: Desk, link: Link, deadline: number) {
    this.desk = desk
    this.link = link
    this.deadline = deadline
  }

  static begin(desk: Desk, timeout: number): Exchange | Promise<Exchange | Unknown> {
    const deadline = performance.now() + timeout
    const { link } = desk.client
    if (link !== null) return new Exchange(desk, link, deadline)
    return desk.client
      .connect(timeout)
      .then((outcome) => (isUnknown(outcome) ? outcome : new Exchange(desk, outcome, deadline)))
  }

  /** One round trip. The first error among the replies is the answer to all. */
  async send(commands: readonly string[]): Promise<readonly Reply[] | Unknown> {
    const left = this.deadline - performance.now()
    if (left <= 0) return unknown(new Error('memcached did not answer in time'))
    const replies = await this.link.ask(commands.join('\r\n'), commands.length, left)
    if (isUnknown(replies)) return replies
    const error = replies.find(isError)
    return error === undefined ? replies : refused(error)
  }

  /** One round trip that sets a ttl: only an answer if the server's clock was right. */
  async sendTimed(commands: readonly string[]): Promise<readonly Reply[] | Unknown> {
    const sentAt = performance.now()
    const replies = await this.send([tellTime(this.desk.keys), ...commands])
    if (isUnknown(replies)) return replies
    const [time, ...rest] = replies
    const doubt = time === undefined ? 'said nothing of the time' : this.doubtAbout(time, sentAt)
    if (doubt === undefined) return rest
    // The next connection finds out which clock it is, and begins anew if it is another one.
    const cause = new Error(`memcached ${doubt}`)
    this.link.end(cause)
    return unknown(cause)
  }

  private doubtAbout(time: Reply, sentAt: number): string | undefined {
    if (codeOf(time) !== 'HD') return 'was emptied, or has evicted what is in use'
    const reading = this.desk.clock.read(Number(flagOf(time, 't')), sentAt, performance.now())
    return reading === 'late' ? 'stood still, and counts time from before that' : undefined
  }
}
