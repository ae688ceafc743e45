import type { Claim } from './claim.ts'
import { ZooKeeperError } from './client/index.ts'
import type { SessionState, ZooKeeper } from './client/index.ts'
import { now } from './client/time.ts'
import type { Timeouts } from './timeouts.ts'

/**
 * Closing a session whose ephemeral paths together exceed the servers' largest message (1 MB) takes a whole ensemble down and
 * keeps it from starting again (ZOOKEEPER-4306). Far below that, the next claim gets another session.
 */
const MOST_PATH_BYTES = 256 * 1024
/**
 * How much longer than a claim's ttl its session lives. The leader decides when a session ends, and it may not know yet what a
 * follower knows: the last ping (every twelfth of the timeout) and what has come since the leader last asked the
 * follower (half a tick). A third of the timeout covers both if that is two ticks at least, so a follower that
 * dies with such news never makes a lease end before its holder thinks.
 */
const SESSION_PER_TTL = 1.5
/** Servers with a `minSessionTimeout` below two ticks take shorter sessions, and do not tell their tick: this is half of the usual one. */
const HALF_TICK_MS = 1000
const PING_SHARE = 12 / 11

export function sessionTimeoutFor(ttl: number): number {
  return Math.ceil(Math.max(ttl * SESSION_PER_TTL, (ttl + HALF_TICK_MS) * PING_SHARE))
}

export function longestTtl(sessionTimeout: number): number {
  return Math.floor(sessionTimeout / SESSION_PER_TTL)
}

/** Several stores may share a user's client, and it is the session that must not carry too much. */
const loads = new WeakMap<ZooKeeper, { bytes: number }>()

function loadOf(zk: ZooKeeper): { bytes: number } {
  const load = loads.get(zk) ?? { bytes: 0 }
  loads.set(zk, load)
  return load
}

/** A ZooKeeper session of this store's, and the claims whose nodes end with it. */
export class ZkSession {
  readonly zk: ZooKeeper
  readonly claims: Set<Claim> = new Set()
  /** Servers count whole paths. */
  readonly chrootBytes: number
  private readonly timeouts: Timeouts
  private readonly load: { bytes: number }
  private stopListening: () => void = () => undefined
  private stopHurrying: (() => void) | undefined
  /** The shortest session that would do for what was here when the client last asked. */
  private hurry = Infinity

  constructor(zk: ZooKeeper, timeouts: Timeouts) {
    this.zk = zk
    // Another copy of the package may have made the client, and an older one.
    this.chrootBytes = Buffer.byteLength((zk as Partial<ZooKeeper>).chrootPath ?? '')
    this.timeouts = timeouts
    this.load = loadOf(zk)
  }

  get over(): boolean {
    const { state } = this.zk
    return state === 'expired' || state === 'auth-failed' || state === 'closed'
  }

  get connected(): boolean {
    return this.zk.state === 'connected'
  }

  get full(): boolean {
    return this.load.bytes >= MOST_PATH_BYTES
  }

  /** How long the session has to last for the shortest lease on it, or that somebody waits for. */
  private get needed(): number {
    let shortest = Infinity
    for (const { state, ttl } of this.claims) if (state !== 'leaving') shortest = Math.min(shortest, ttl)
    return (this.hurry = sessionTimeoutFor(shortest))
  }

  /** The client plans its next look by what it knew at the last one. */
  private hurryFor(ttl: number): void {
    const needed = sessionTimeoutFor(ttl)
    if (needed >= this.hurry || needed >= this.zk.sessionTimeout) return
    this.stopHurrying?.()
    this.stopHurrying = (this.zk as Partial<ZooKeeper>).hurry?.call(this.zk, () => this.needed)
  }

  /** As long as it is now: the next server that takes the session over may allow less. */
  lastsFor(ttl: number): boolean {
    return this.zk.sessionTimeout >= ttl * SESSION_PER_TTL - 1
  }

  assertLasts(ttl: number, advice: string): void {
    if (!this.lastsFor(ttl)) throw this.tooShort(ttl, advice)
  }

  tooShort(ttl: number, advice: string): ZooKeeperError {
    const { sessionTimeout } = this.zk
    return new ZooKeeperError(
      'BAD_ARGUMENTS',
      `The session lasts ${sessionTimeout} ms, which is enough for a ttl of ${longestTtl(sessionTimeout)} ms, not of ${ttl} ms. ${advice}`,
    )
  }

  add(claim: Claim): void {
    if (claim.pathBytes > MOST_PATH_BYTES) throw new ZooKeeperError('BAD_ARGUMENTS', TOO_HEAVY)
    this.claims.add(claim)
    this.load.bytes += claim.pathBytes
    this.zk.use(1)
    this.hurryFor(claim.ttl)
  }

  delete(claim: Claim): void {
    if (!this.claims.delete(claim)) return
    this.load.bytes -= claim.pathBytes
    this.zk.use(-1)
  }

  /** Resolves at once while connected; rejects when no server has been found by the deadline, or in a whole round. */
  async ready(deadline: number): Promise<void> {
    if (this.connected) return
    const ended = new ZooKeeperError('CLOSED', 'The session is over')
    if (this.over) throw ended
    this.zk.use(1)
    let enough: () => void = () => undefined
    const settled = new Promise<ZooKeeperError | undefined>((resolve) => {
      enough = this.zk.onState((state, error) => {
        if (state === 'connected') resolve(undefined)
        else if (this.over) resolve(error ?? ended)
        else if (state === 'connecting' && error !== undefined) resolve(error)
      })
    })
    const late = new ZooKeeperError('CONNECTION_LOSS', 'No ZooKeeper server could be reached in time')
    const error = await this.timeouts.race(settled, Math.max(1, deadline - now()), late)
    // The client may be the user's, and the servers away for hours.
    enough()
    this.zk.use(-1)
    if (error !== undefined) throw error
  }

  /** Requests that belong to no claim keep the process alive too, until they are answered. */
  async asking<T>(work: () => Promise<T>): Promise<T> {
    this.zk.use(1)
    try {
      return await work()
    } finally {
      this.zk.use(-1)
    }
  }

  onState(listener: (state: SessionState) => void): void {
    this.stopListening = this.zk.onState(listener)
  }

  /** Nothing of it is left at the client, which may go on to live. */
  forget(): void {
    this.stopListening()
    this.stopHurrying?.()
  }
}

const TOO_HEAVY =
  'Each permit is a node at ZooKeeper, and so many in one claim could take an ensemble down: ask for fewer at a time'
