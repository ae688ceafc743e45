/**
 * memcached's clock is a number of seconds that a timer of its main thread moves on. A server that was stopped (SIGSTOP,
 * a paused machine, swapping) still has the old number when it goes on, and for some milliseconds counts every ttl from
 * there: a lock granted in that moment ends earlier by as long as the pause took. Measured: 7 of 8 requests that waited in
 * a server stopped for 3.5 s got a ttl that was 4 s too short, and the server's own answer said otherwise.
 *
 * So before a ttl is set, the time that an item of ours has left is read, which tells the server's time, and compared with
 * the time that must have passed. Because it is read first, on the same connection, a pause in between does no harm: the
 * ttl then counts from the time that was read, or from later.
 *
 * The sum, in seconds, for a request that leaves now: a reading is good for 0.25; one that is late by less than 1.75 passes;
 * and the one that it is compared with may itself have been late by 2, as any is: cut to whole seconds, and up to one
 * second old. So the ttl counts from 4 seconds ago at the worst, and `secondsFor` adds as many, less `earlyExpiry`.
 */

const LATE_S = 1.75
/**
 * The best comparison grows old: clocks differ in rate, and the server's timer, late by a millisecond every second, takes
 * a quarter of an hour to go once around the second.
 */
const DRIFT = 0.0005
/** So many different times in a row that were all late are not a pause: the clock runs, and has lost time for good. */
const LATE_TICKS = 3

export type ClockReading = 'right' | 'late'

export class ServerClock {
  /** Which item is read: after a restart or a flush it is another one. */
  private identity = ''
  /** The largest lead over our clock that was seen, in seconds, and when. */
  private lead = -Infinity
  private seenAt = 0
  /** The last time that was too late, and how many there were since one was right. */
  private lateAt: number | undefined
  private lateTicks = 0

  /** The first reading of a connection, which also says of which item it is. */
  identify(identity: string, secondsLeft: number, now: number): void {
    if (identity !== this.identity) {
      this.identity = identity
      this.lead = -Infinity
    }
    this.read(secondsLeft, now, now)
  }

  /** `sentAt` and `now`, in milliseconds: before the request left, and when the answer is here. */
  read(secondsLeft: number, sentAt: number, now: number): ClockReading {
    const time = -secondsLeft
    const known = this.lead - ((now - this.seenAt) / 1000) * DRIFT
    if (known + sentAt / 1000 - time > LATE_S) {
      if (time !== this.lateAt) this.lateTicks++
      this.lateAt = time
      if (this.lateTicks <= LATE_TICKS) return 'late'
      // A machine that was suspended: what was stored before lives longer, and what is stored now its full time.
      this.lead = -Infinity
    }
    this.lateAt = undefined
    this.lateTicks = 0
    const lead = time - now / 1000
    if (lead >= this.lead - ((now - this.seenAt) / 1000) * DRIFT) {
      this.lead = lead
      this.seenAt = now
    }
    return 'right'
  }
}
