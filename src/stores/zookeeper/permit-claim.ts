import type { ClaimAnswer, ClaimRequest } from '../../core/contract.ts'
import { BUSY, Claim, QUEUED } from './claim.ts'
import type { ClaimHost } from './claim.ts'
import { ZooKeeperError, hasCode } from './client/index.ts'
import type { Created, Watcher } from './client/index.ts'
import { setTimeout } from './client/time.ts'
import { SUFFIX, capacityOf, parseNode } from './place.ts'
import type { Place } from './place.ts'
import type { Seat } from './seat.ts'
import { gateOf, leasesOf, parseCapacity } from './semaphore.ts'
import { Spot, noChildren } from './spot.ts'

/** Others pass the gate all the time: who looks at every change would look all the time. */
const LOOK_EVERY_MS = 100

type Turn = 'held' | 'full' | 'mismatch'

/** Permits of a semaphore: a turn at the gate, then a node for each permit. */
export class PermitClaim extends Claim {
  private readonly gate: Spot
  private leases: string[] = []
  private czxid = 0n
  /** Leases may have been made without our hearing of it. */
  private doubtful = false
  /** It is our turn at the gate. */
  private inside = false
  private watcher: Watcher | null = null
  private turning: Promise<Turn> | null = null

  constructor(request: ClaimRequest, dir: string, seat: Seat, host: ClaimHost) {
    super(request, dir, seat, host)
    const moved = (place: Place | null): void => this.moved(place)
    this.gate = new Spot(seat.zk, {
      dir: gateOf(dir),
      kind: 'lock',
      prefix: this.prefix,
      data: this.data,
      acl: host.acl,
      directories: host.directories,
      moved,
    })
  }

  async enter(): Promise<ClaimAnswer> {
    const { gate, state } = this
    if (state === 'held') {
      if (await this.check()) return this.heldAnswer()
      throw new ZooKeeperError('NO_NODE', 'The nodes were removed')
    }
    const joining = gate.node === null ? gate.join() : gate.look()
    const [place, mismatch] = await Promise.all([joining, state === 'new' ? this.mismatch() : null])
    this.assertWanted()
    if (place === null) throw new ZooKeeperError('NO_NODE', 'The node was removed')
    if (mismatch !== null) return this.refuse({ kind: 'mismatch', capacity: mismatch })
    if (place.behind !== null) {
      if (this.whenBusy === 'try') return this.refuse(BUSY)
      this.state = 'queued'
      gate.wait(place)
      return QUEUED
    }
    const turn = await this.takeTurn()
    this.assertWanted()
    if (turn === 'mismatch')
      return this.refuse({ kind: 'mismatch', capacity: (await this.mismatch()) ?? this.capacity })
    if (turn === 'held') return this.passGate(() => this.hold(this.czxid, place.contended))
    if (this.whenBusy === 'try') return this.refuse(BUSY)
    this.state = 'queued'
    return QUEUED
  }

  async check(): Promise<boolean> {
    return this.state === 'queued' ? this.checkWaiting() : this.checkHeld()
  }

  /** Until the grant there is a node at the gate; whether the leases are there is seen when they are counted. */
  private async checkWaiting(): Promise<boolean> {
    const there = await this.gate.check()
    // Granted meanwhile: then it is right that nothing stands at the gate any more.
    if (this.state !== 'queued') return this.check()
    this.countAgain()
    return there
  }

  private async checkHeld(): Promise<boolean> {
    const { zk } = this.seat
    const [{ children }, waiting] = await Promise.all([
      zk.getChildren(leasesOf(this.dir)).catch(noChildren),
      zk.getChildren(gateOf(this.dir)).catch(noChildren),
    ])
    this.contended = waiting.children.some((name) => !name.startsWith(this.prefix))
    return this.has(children)
  }

  private has(children: readonly string[]): boolean {
    return this.leases.every((lease) => children.includes(lease))
  }

  attend(): void {
    const [lease] = this.leases
    const own: Watcher = ({ type }) => {
      if (this.state === 'held' && type === 'deleted' && this.leases[0] === lease) this.host.vanished(this)
    }
    this.seat.zk.getData(`${leasesOf(this.dir)}/${lease}`, { watch: own }).catch(() => undefined)
    this.watchForWaiters()
  }

  private watchForWaiters(): void {
    if (this.contended || this.state !== 'held') return
    const watch: Watcher = () => void setTimeout(() => this.watchForWaiters(), LOOK_EVERY_MS).unref()
    this.seat.zk.getChildren(gateOf(this.dir), { watch }).then(
      ({ children }) => {
        if (children.some((name) => parseNode(name) !== null && !name.startsWith(this.prefix)))
          this.nowContended()
      },
      () => undefined,
    )
  }

  resume(): void {
    // The gate must not stay shut because the reply to its opening got lost.
    if (this.state === 'held' && (this.gate.node !== null || this.gate.doubtful))
      this.gate.leave().catch(() => undefined)
    if (this.state !== 'queued') return
    if (!this.inside) {
      if (!this.gate.waiting) this.gate.lookAgain()
    } else if (this.watcher === null) this.countAgain()
  }

  async leave(): Promise<boolean> {
    this.stopWatching()
    const removed = await this.removeAll()
    const waited = await this.gate.leave()
    return waited || removed
  }

  protected async replace(): Promise<bigint | undefined> {
    const old = this.leases
    const created = await this.createLeases()
    await Promise.all(old.map((name) => this.remove(name)))
    return created
  }

  /** Another kind of lock, or a semaphore of another size, is in use under this name. */
  private async mismatch(): Promise<number | null> {
    const { zk } = this.seat
    const [own, agreed, held, waiting] = await Promise.all([
      zk.getChildren(this.dir).catch(noChildren),
      zk.getData(leasesOf(this.dir)).catch(() => null),
      zk.getChildren(leasesOf(this.dir)).catch(noChildren),
      zk.getChildren(gateOf(this.dir)).catch(noChildren),
    ])
    const other = own.children.map(parseNode).find((node) => node !== null)
    if (other !== undefined && other !== null) return capacityOf(other.kind)
    const capacity = agreed === null ? null : parseCapacity(agreed.data)
    const inUse = [...held.children, ...waiting.children].some((name) => !name.startsWith(this.prefix))
    return inUse && capacity !== null && capacity !== this.capacity ? capacity : null
  }

  /** It is our turn: add our leases and count. Nobody else adds any meanwhile. */
  private takeTurn(): Promise<Turn> {
    this.turning ??= this.turn().finally(() => (this.turning = null))
    return this.turning
  }

  private async turn(): Promise<Turn> {
    this.inside = true
    for (;;) {
      if (this.leases.length === 0) {
        if (!(await this.agree())) return 'mismatch'
        if (this.doubtful) await this.removeAll()
        this.czxid = await this.createLeases()
      }
      const count = await this.count()
      if (count !== 'missing') return count
      // Somebody removed ours. As long as we stand at the gate we may add them anew.
      this.assertWanted()
      await this.removeAll()
    }
  }

  /** At the gate nobody else can change it: the first user of an idle semaphore says how large it is. */
  private async agree(): Promise<boolean> {
    const { zk } = this.seat
    const path = leasesOf(this.dir)
    const capacity = String(this.capacity)
    for (;;) {
      try {
        const { data, stat } = await zk.getData(path)
        if (data.toString() === capacity) return true
        if (stat.numChildren > 0) return parseCapacity(data) === null
        await zk.setData(path, capacity, stat.version)
        return true
      } catch (error) {
        if (!hasCode(error, 'NO_NODE')) throw error
      }
      await zk
        .create(path, { mode: 'container', data: capacity, acl: this.host.acl })
        .catch((error: unknown) => {
          if (!hasCode(error, 'NODE_EXISTS')) throw error
        })
    }
  }

  /** The transaction of the first. */
  private async createLeases(): Promise<bigint> {
    const { zk } = this.seat
    const path = `${leasesOf(this.dir)}/${this.prefix}${SUFFIX.lease}`
    const one = (): Promise<Created> =>
      zk.create(path, { mode: 'ephemeral-sequential', data: this.data, acl: this.host.acl })
    this.doubtful = true
    const results = await Promise.allSettled(Array.from({ length: this.weight }, one))
    const made = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    const failed = results.find((result) => result.status === 'rejected')
    // What was made is found by its name, when we leave or try again.
    if (failed !== undefined) throw failed.reason
    this.doubtful = false
    this.leases = made.map(({ path: at }) => at.slice(at.lastIndexOf('/') + 1))
    return made[0]?.stat.czxid ?? 0n
  }

  /** Whether there are not too many leases. If there are, `countAgain` follows at the next change. */
  private async count(): Promise<'held' | 'full' | 'missing'> {
    for (;;) {
      const watcher: Watcher = () => {
        if (this.watcher !== watcher) return
        this.watcher = null
        this.countAgain()
      }
      this.stopWatching()
      this.watcher = watcher
      const { children } = await this.seat.zk.getChildren(leasesOf(this.dir), { watch: watcher })
      if (!this.has(children)) return 'missing'
      if (children.length <= this.capacity) {
        this.stopWatching()
        return 'held'
      }
      if (this.watcher === watcher) return 'full'
      // It fired before we could act on it, or somebody gave the claim up.
      this.seat.zk.unwatch(leasesOf(this.dir), 'children', watcher)
      this.assertWanted()
    }
  }

  private countAgain(): void {
    if (this.state !== 'queued' || !this.inside || this.turning !== null) return
    this.takeTurn().then(
      (turn) => {
        if (this.state !== 'queued') return
        if (turn === 'mismatch') this.host.vanished(this)
        if (turn === 'held') this.passGate(() => this.push(this.czxid, false))
      },
      () => this.stopWatching(),
    )
  }

  /** Lets the next one in. If that fails now, `leave` or the session's end does it. */
  private passGate<T>(then: () => T): T {
    this.stopWatching()
    this.inside = false
    this.gate.leave().catch(() => undefined)
    return then()
  }

  private moved(place: Place | null): void {
    if (this.state !== 'queued' || this.inside) return
    if (place === null) this.host.vanished(this)
    else if (place.behind !== null) this.gate.wait(place)
    else {
      this.inside = true
      this.countAgain()
    }
  }

  private assertWanted(): void {
    if (this.state === 'leaving') throw new ZooKeeperError('CLOSED', 'The claim was given up')
  }

  private stopWatching(): void {
    const { watcher } = this
    this.watcher = null
    if (watcher !== null) this.seat.zk.unwatch(leasesOf(this.dir), 'children', watcher)
  }

  /** Our leases, and those that we never heard of. */
  private async removeAll(): Promise<boolean> {
    const leases = this.doubtful ? await this.find() : this.leases
    const removed = await Promise.all(leases.map((name) => this.remove(name)))
    this.leases = []
    this.doubtful = false
    return removed.some(Boolean)
  }

  private async find(): Promise<string[]> {
    const { zk } = this.seat
    const path = leasesOf(this.dir)
    const [, { children }] = await Promise.all([zk.sync(path), zk.getChildren(path).catch(noChildren)])
    return children.filter((name) => name.startsWith(this.prefix))
  }

  private async remove(name: string): Promise<boolean> {
    try {
      await this.seat.zk.delete(`${leasesOf(this.dir)}/${name}`)
      return true
    } catch (error) {
      if (hasCode(error, 'NO_NODE')) return false
      throw error
    }
  }
}
