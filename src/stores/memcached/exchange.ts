import type { Unknown } from '../../core/contract.ts'
import type { Client } from './client.ts'
import { tellTime } from './commands.ts'
import { isUnknown, refused, unknown } from './failure.ts'
import type { Descriptions } from './describing.ts'
import type { Grants } from './grants.ts'
import type { Keys } from './keys.ts'
import type { Link, Read } from './link.ts'
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
  readonly descriptions: Descriptions
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
  send<T>(commands: string, replies: number, read: Read<T>): Promise<T | Unknown> {
    const left = this.deadline - performance.now()
    if (left <= 0) return Promise.resolve(unknown(new Error('memcached did not answer in time')))
    return this.link.ask(commands, replies, left, (answers) => {
      const error = answers.find(isError)
      return error === undefined ? read(answers) : refused(error)
    })
  }

  /** One round trip that sets a ttl: only an answer if the server's clock was right. The first reply tells its time. */
  sendTimed<T>(commands: string, replies: number, read: Read<T>): Promise<T | Unknown> {
    const sentAt = performance.now()
    return this.send<T>(`${tellTime(this.desk.keys)}\r\n${commands}`, replies + 1, (answers) => {
      const doubt = this.doubtAbout(answers[0] as Reply, sentAt)
      if (doubt === undefined) return read(answers)
      // The next connection finds out which clock it is, and begins anew if it is another one.
      const cause = new Error(`memcached ${doubt}`)
      this.link.end(cause)
      return unknown(cause)
    })
  }

  private doubtAbout(time: Reply, sentAt: number): string | undefined {
    if (codeOf(time) !== 'HD') return 'was emptied, or has evicted what is in use'
    const reading = this.desk.clock.read(Number(flagOf(time, 't')), sentAt, performance.now())
    return reading === 'late' ? 'stood still, and counts time from before that' : undefined
  }
}
