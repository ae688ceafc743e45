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

/** A ZooKeeper session of this store's, and the claims whose nodes end with it. */
export class Seat {
  readonly zk: ZooKeeper
  readonly claims: Set<Claim> = new Set()
  private readonly timeouts: Timeouts
  private pathBytes = 0
  private users = 0

  constructor(zk: ZooKeeper, timeouts: Timeouts) {
    this.zk = zk
    this.timeouts = timeouts
  }

  get over(): boolean {
    const { state } = this.zk
    return state === 'expired' || state === 'auth-failed' || state === 'closed'
  }

  get connected(): boolean {
    return this.zk.state === 'connected'
  }

  get full(): boolean {
    return this.pathBytes >= MOST_PATH_BYTES
  }

  add(claim: Claim): void {
    this.claims.add(claim)
    this.pathBytes += pathBytes(claim)
    this.use(1)
  }

  delete(claim: Claim): void {
    if (!this.claims.delete(claim)) return
    this.pathBytes -= pathBytes(claim)
    this.use(-1)
  }

  /** Resolves at once while connected; rejects when no server has been found by the deadline, or in a whole round. */
  async ready(deadline: number): Promise<void> {
    if (this.connected) return
    this.use(1)
    let enough: () => void = () => undefined
    const inVain = new Promise<ZooKeeperError>((resolve) => {
      enough = this.zk.onState((state, error) => {
        if (state === 'connecting' && error !== undefined) resolve(error)
      })
    })
    const connected = Promise.race([inVain, this.zk.connected()]).then(
      (error) => error ?? undefined,
      (error: ZooKeeperError) => error,
    )
    const late = new ZooKeeperError('CONNECTION_LOSS', 'No ZooKeeper server could be reached in time')
    const error = await this.timeouts.race(connected, Math.max(1, deadline - now()), late)
    enough()
    this.use(-1)
    if (error !== undefined) throw error
  }

  /** Requests that belong to no claim keep the process alive too, until they are answered. */
  async asking<T>(work: () => Promise<T>): Promise<T> {
    this.use(1)
    try {
      return await work()
    } finally {
      this.use(-1)
    }
  }

  onState(listener: (state: SessionState) => void): void {
    this.zk.onState(listener)
  }

  private use(change: number): void {
    this.users += change
    this.zk.keepAlive(this.users > 0)
  }
}

/** The node's name is about as long as two of these. */
function pathBytes({ dir, prefix }: Claim): number {
  return dir.length + 2 * prefix.length
}
