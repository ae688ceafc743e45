import { said } from '../../core/arguments.ts'
import type { Unknown } from '../../core/contract.ts'
import { ZooKeeper, ZooKeeperError } from './client/index.ts'
import type { ConnectString, ServerAddress, SessionState, ZooKeeperOptions } from './client/index.ts'
import { now, setTimeout } from './client/time.ts'
import { ZkSession, sessionTimeoutFor } from './zk-session.ts'
import type { Timeouts } from './timeouts.ts'
import { LATE, failed } from './failure.ts'

/** Where sessions come from: a client of the user's, or servers to dial. */
export type Source = { readonly client: ZooKeeper } | (ConnectString & { readonly options: ZooKeeperOptions })

/**
 * Sessions of different length. A program that makes up ttls as it goes must not open one for each: servers let one address
 * have 60 by default. Beyond these there is one more, of the greatest length.
 */
const MOST_LENGTHS = 8
const TOO_MANY = 'The session of the client that was passed in carries as many locks as one session should'

/** The sessions of a store: one for each length of ttl in use, and more when one would hold too many nodes. */
export class ZkSessions {
  private readonly source: Source
  private readonly timeouts: Timeouts
  private readonly longest: number
  private readonly onState: (zkSession: ZkSession, state: SessionState) => void
  private readonly byTimeout = new Map<number, ZkSession[]>()
  private closed = false

  constructor(
    { source, maxSessionTimeout }: { readonly source: Source; readonly maxSessionTimeout: number },
    timeouts: Timeouts,
    onState: (zkSession: ZkSession, state: SessionState) => void,
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

  /** A session for a claim, at once if one is connected. Rejects at the deadline, or when no session may last that long. */
  take(ttl: number, deadline: number): ZkSession | Promise<ZkSession> {
    const zkSession = this.pick(sessionTimeoutFor(ttl))
    if (zkSession.connected) return this.lastingFor(ttl, zkSession)
    return zkSession.ready(deadline).then(() => this.lastingFor(ttl, zkSession))
  }

  /** One that can be had without waiting, asking or opening anything. */
  free(ttl: number): ZkSession | undefined {
    const timeout = sessionTimeoutFor(ttl)
    const zkSessions = this.byTimeout.get('client' in this.source ? 0 : timeout)
    if (zkSessions === undefined || this.closed) return undefined
    for (const zkSession of zkSessions) {
      if (zkSession.connected && !zkSession.full && zkSession.lastsFor(ttl)) return zkSession
    }
    return undefined
  }

  private lastingFor(ttl: number, zkSession: ZkSession): ZkSession {
    zkSession.assertLasts(
      ttl,
      'client' in this.source
        ? 'Give the client a longer sessionTimeout.'
        : 'Shorten the ttl, or raise maxSessionTimeout at the servers.',
    )
    return zkSession
  }

  /** A question that belongs to no claim, by way of any session. */
  ask<T>(question: (zk: ZooKeeper) => Promise<T>, timeout: number): Promise<T | Unknown> {
    const answer = async (): Promise<T | Unknown> => {
      try {
        const zkSession = this.any()
        await zkSession.ready(now() + timeout)
        return await zkSession.asking(() => question(zkSession.zk))
      } catch (error) {
        return failed(error)
      }
    }
    return this.timeouts.race(answer(), timeout, LATE)
  }

  /** Any session: for questions that belong to no claim. */
  any(): ZkSession {
    for (const zkSessions of this.byTimeout.values())
      for (const zkSession of zkSessions) if (!zkSession.over) return zkSession
    return this.pick(sessionTimeoutFor(10_000))
  }

  /** `staying`: sessions that have to live until then. They keep no process alive. */
  async close(staying: ReadonlyMap<ZkSession, number>): Promise<void> {
    this.closed = true
    const zkSessions = [...this.byTimeout.values()].flat()
    if ('client' in this.source) return zkSessions.forEach((zkSession) => zkSession.forget())
    this.byTimeout.clear()
    for (const [zkSession, until] of staying) {
      zkSession.forget()
      zkSession.zk.keepAlive(false)
      setTimeout(() => void zkSession.zk.close(), Math.max(0, until - now())).unref()
    }
    await Promise.all(zkSessions.filter((zkSession) => !staying.has(zkSession)).map(({ zk }) => zk.close()))
  }

  private pick(timeout: number): ZkSession {
    if (this.closed) throw new ZooKeeperError('CLOSED', 'The store was closed')
    if ('client' in this.source) {
      const [zkSession] = this.byTimeout.get(0) ?? []
      if (zkSession?.full === true) throw new ZooKeeperError('QUOTA_EXCEEDED', TOO_MANY)
      if (zkSession !== undefined && !zkSession.over) return zkSession
      throw new ZooKeeperError(
        'CLOSED',
        'The session of the client that was passed in is over: pass a new one',
      )
    }
    const length = this.lengthFor(timeout)
    const zkSessions = (this.byTimeout.get(length) ?? []).filter((zkSession) => !zkSession.over)
    this.byTimeout.set(length, zkSessions)
    const free = zkSessions.find((zkSession) => !zkSession.full)
    if (free !== undefined) return free
    const { servers, chroot, options } = this.source
    const settings = { chroot, ...said(options), sessionTimeout: length, background: true }
    const zkSession = this.watched(dialled(servers, settings))
    zkSessions.push(zkSession)
    return zkSession
  }

  private lengthFor(timeout: number): number {
    if (this.byTimeout.has(timeout) || this.byTimeout.size < MOST_LENGTHS) return timeout
    const longer = [...this.byTimeout.keys()].filter((length) => length >= timeout)
    return longer.length === 0 ? Math.max(timeout, this.longest) : Math.min(...longer)
  }

  private watched(zk: ZooKeeper): ZkSession {
    const zkSession = new ZkSession(zk, this.timeouts)
    zkSession.onState((state) => this.onState(zkSession, state))
    return zkSession
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
