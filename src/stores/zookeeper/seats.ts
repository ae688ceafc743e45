import { said } from '../../core/arguments.ts'
import type { Unknown } from '../../core/contract.ts'
import { ZooKeeper, ZooKeeperError } from './client/index.ts'
import type { ConnectString, ServerAddress, SessionState, ZooKeeperOptions } from './client/index.ts'
import { now, setTimeout } from './client/time.ts'
import { Seat, sessionTimeoutFor } from './seat.ts'
import type { Timeouts } from './timeouts.ts'
import { LATE, failed } from './unknown.ts'

/** Where sessions come from: a client of the user's, or servers to dial. */
export type Source = { readonly client: ZooKeeper } | (ConnectString & { readonly options: ZooKeeperOptions })

/**
 * Sessions of different length. A program that makes up ttls as it goes must not open one for each: servers let one address
 * have 60 by default. Beyond these there is one more, of the greatest length.
 */
const MOST_LENGTHS = 8
const TOO_MANY = 'The session of the client that was passed in carries as many locks as one session should'

/** The sessions of a store: one for each length of ttl in use, and more when one would hold too many nodes. */
export class Seats {
  private readonly source: Source
  private readonly timeouts: Timeouts
  private readonly longest: number
  private readonly onState: (seat: Seat, state: SessionState) => void
  private readonly byTimeout = new Map<number, Seat[]>()
  private closed = false

  constructor(
    { source, maxSessionTimeout }: { readonly source: Source; readonly maxSessionTimeout: number },
    timeouts: Timeouts,
    onState: (seat: Seat, state: SessionState) => void,
  ) {
    this.source = source
    this.timeouts = timeouts
    this.longest = maxSessionTimeout
    this.onState = onState
    if ('client' in source) this.byTimeout.set(0, [this.watched(source.client)])
  }

  /** Begins to connect for claims that will come. */
  open(ttl: number): void {
    this.pick(sessionTimeoutFor(ttl))
  }

  /** A seat for a claim, at once if one is connected. Rejects at the deadline, or when no session may last that long. */
  take(ttl: number, deadline: number): Seat | Promise<Seat> {
    const seat = this.pick(sessionTimeoutFor(ttl))
    if (seat.connected) return this.lastingFor(ttl, seat)
    return seat.ready(deadline).then(() => this.lastingFor(ttl, seat))
  }

  /** One that can be had without waiting, asking or opening anything. */
  free(ttl: number): Seat | undefined {
    const timeout = sessionTimeoutFor(ttl)
    const seats = this.byTimeout.get('client' in this.source ? 0 : timeout)
    if (seats === undefined || this.closed) return undefined
    for (const seat of seats) {
      if (seat.connected && !seat.full && seat.lastsFor(ttl)) return seat
    }
    return undefined
  }

  private lastingFor(ttl: number, seat: Seat): Seat {
    seat.assertLasts(
      ttl,
      'client' in this.source
        ? 'Give the client a longer sessionTimeout.'
        : 'Shorten the ttl, or raise maxSessionTimeout at the servers.',
    )
    return seat
  }

  /** A question that belongs to no claim, by way of any session. */
  ask<T>(question: (zk: ZooKeeper) => Promise<T>, timeout: number): Promise<T | Unknown> {
    const answer = async (): Promise<T | Unknown> => {
      try {
        const seat = this.any()
        await seat.ready(now() + timeout)
        return await seat.asking(() => question(seat.zk))
      } catch (error) {
        return failed(error)
      }
    }
    return this.timeouts.race(answer(), timeout, LATE)
  }

  /** Any seat: for questions that belong to no claim. */
  any(): Seat {
    for (const seats of this.byTimeout.values()) for (const seat of seats) if (!seat.over) return seat
    return this.pick(sessionTimeoutFor(10_000))
  }

  /** `staying`: sessions that have to live until then. They keep no process alive. */
  async close(staying: ReadonlyMap<Seat, number>): Promise<void> {
    this.closed = true
    const seats = [...this.byTimeout.values()].flat()
    if ('client' in this.source) return seats.forEach((seat) => seat.forget())
    this.byTimeout.clear()
    for (const [seat, until] of staying) {
      seat.forget()
      seat.zk.keepAlive(false)
      setTimeout(() => void seat.zk.close(), Math.max(0, until - now())).unref()
    }
    await Promise.all(seats.filter((seat) => !staying.has(seat)).map(({ zk }) => zk.close()))
  }

  private pick(timeout: number): Seat {
    if (this.closed) throw new ZooKeeperError('CLOSED', 'The store was closed')
    if ('client' in this.source) {
      const [seat] = this.byTimeout.get(0) ?? []
      if (seat?.full === true) throw new ZooKeeperError('QUOTA_EXCEEDED', TOO_MANY)
      if (seat !== undefined && !seat.over) return seat
      throw new ZooKeeperError(
        'CLOSED',
        'The session of the client that was passed in is over: pass a new one',
      )
    }
    const length = this.lengthFor(timeout)
    const seats = (this.byTimeout.get(length) ?? []).filter((seat) => !seat.over)
    this.byTimeout.set(length, seats)
    const free = seats.find((seat) => !seat.full)
    if (free !== undefined) return free
    const { servers, chroot, options } = this.source
    const settings = { chroot, ...said(options), sessionTimeout: length, background: true }
    const seat = this.watched(dialled(servers, settings))
    seats.push(seat)
    return seat
  }

  private lengthFor(timeout: number): number {
    if (this.byTimeout.has(timeout) || this.byTimeout.size < MOST_LENGTHS) return timeout
    const longer = [...this.byTimeout.keys()].filter((length) => length >= timeout)
    return longer.length === 0 ? Math.max(timeout, this.longest) : Math.min(...longer)
  }

  private watched(zk: ZooKeeper): Seat {
    const seat = new Seat(zk, this.timeouts)
    seat.onState((state) => this.onState(seat, state))
    return seat
  }
}

/** What Node refuses at once (a certificate for TLS that is none) it refuses always. */
function dialled(servers: readonly ServerAddress[], settings: ZooKeeperOptions): ZooKeeper {
  try {
    return new ZooKeeper(servers, settings)
  } catch (cause) {
    throw new ZooKeeperError('BAD_ARGUMENTS', (cause as Error).message, { cause })
  }
}
