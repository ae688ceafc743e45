import type { ClaimAnswer, ClaimRequest } from '../../core/contract.ts'
import { BUSY, Claim, QUEUED } from './claim.ts'
import type { ClaimHost } from './claim.ts'
import type { Watcher } from './client/index.ts'
import { clearTimeout, now, setTimeout } from './client/time.ts'
import { PermitNodes } from './permit-nodes.ts'
import { capacityOf, parseNode } from './position.ts'
import type { Position } from './position.ts'
import type { ZkSession } from './zk-session.ts'
import { gateOf, leasesOf, parseCapacity } from './semaphore.ts'
import { OwnNode, noChildren } from './own-node.ts'
import { givenUp } from './failure.ts'

/** Others pass the gate all the time: who looks at every change would look all the time. */
const LOOK_EVERY_MS = 100
/** For so long those who are just being let in are waited for. Whoever takes longer stands still there, or is dead. */
const PASSING_MS = 1000
/** A server with too much to do refused something; the same as for whole claims. */
const REFUSED_MS = 1000

type Turn = 'held' | 'full' | 'mismatch'

/** Permits of a semaphore: a turn at the gate, then a node for each permit. */
export class PermitClaim extends Claim {
  private readonly gate: OwnNode
  private readonly permitNodes: PermitNodes
  private czxid = 0n
  /** It is our turn at the gate. */
  private inside = false
  private watcher: Watcher | null = null
  private turning: Promise<Turn> | null = null
  /** Whoever waits for those before us at the gate; undefined: no longer. */
  private passing: ((position: Position | null | undefined) => void) | null = null

  constructor(request: ClaimRequest, dir: string, zkSession: ZkSession, host: ClaimHost) {
    super(request, dir, zkSession, host)
    const moved = (position: Position | null): void => this.moved(position)
    const { prefix, data } = this
    this.permitNodes = new PermitNodes(zkSession.zk, { dir: leasesOf(dir), prefix, data, acl: host.acl })
    this.gate = new OwnNode(zkSession.zk, {
      dir: gateOf(dir),
      kind: 'lock',
      prefix,
      data,
      acl: host.acl,
      directories: host.directories,
      moved,
    })
  }

  async enter(deadline: number): Promise<ClaimAnswer> {
    const { gate, state } = this
    if (state === 'held') {
      const [, there] = await Promise.all([this.zkSession.zk.confirm(this.dir), this.check()])
      if (there) return this.heldAnswer()
      throw this.removed()
    }
    const found = gate.node === null ? await gate.join() : await gate.look()
    this.assertWanted()
    if (found === null) throw this.removed()
    if (!gate.mayStay(found)) return this.refuse(BUSY)
    // Only now, with our own node at the gate: of two who come at once, one at least sees the other.
    const looking = state === 'new' ? this.mismatch() : Promise.resolve(null)
    const [mismatch, early] = await Promise.all([looking, found.behind === null ? this.takeTurn() : null])
    this.assertWanted()
    if (mismatch !== null) return this.refuse({ kind: 'mismatch', capacity: mismatch })
    const position = state === 'new' ? await this.letPass(found, deadline) : found
    const turn = early ?? (position.behind === null ? await this.takeTurn() : null)
    this.assertWanted()
    if (position.behind !== null) {
      if (this.whenBusy === 'try') return this.refuse(BUSY)
      this.state = 'queued'
      gate.wait(position)
      return QUEUED
    }
    if (turn === 'mismatch')
      return this.refuse({ kind: 'mismatch', capacity: (await this.mismatch()) ?? this.capacity })
    if (turn === 'held') return this.passGate(() => this.hold(this.czxid, position.contended))
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
    const { zk } = this.zkSession
    const [{ children }, waiting] = await Promise.all([
      zk.getChildren(leasesOf(this.dir)).catch(noChildren),
      zk.getChildren(gateOf(this.dir)).catch(noChildren),
    ])
    this.contended = waiting.children.some((name) => !name.startsWith(this.prefix))
    return this.permitNodes.areAmong(children)
  }

  attend(): void {
    const [lease] = this.permitNodes.names
    const own: Watcher = ({ type }) => {
      if (this.state === 'held' && type === 'deleted' && this.permitNodes.names[0] === lease)
        this.host.vanished(this)
    }
    this.zkSession.zk.getData(`${leasesOf(this.dir)}/${lease}`, { watch: own }).catch(() => undefined)
    this.watchForWaiters()
  }

  private watchForWaiters(): void {
    if (this.contended || this.state !== 'held') return
    const watch: Watcher = () => void setTimeout(() => this.watchForWaiters(), LOOK_EVERY_MS).unref()
    this.zkSession.zk.getChildren(gateOf(this.dir), { watch }).then(
      ({ children }) => {
        if (children.some((name) => parseNode(name) !== null && !name.startsWith(this.prefix)))
          this.nowContended()
      },
      () => undefined,
    )
  }

  resume(): void {
    // The gate must not stay shut because the reply to its opening got lost.
    this.openGate()
    if (this.state !== 'queued') return
    if (!this.inside) {
      if (!this.gate.waiting) this.gate.lookAgain()
    } else if (this.watcher === null) this.countAgain()
  }

  async leave(): Promise<boolean> {
    this.passing?.(undefined)
    this.stopWatching()
    const removed = await this.permitNodes.remove()
    const waited = await this.gate.leave()
    return waited || removed
  }

  protected async replace(): Promise<bigint | undefined> {
    return this.permitNodes.replace(this.weight, () => this.assertWanted())
  }

  /**
   * Those before us at the gate may be on their way in. While there is room for us all the same, they are not in our way, and gone
   * in a moment; their permits count from before they go.
   */
  private async letPass(found: Position, deadline: number): Promise<Position> {
    const until = Math.min(now() + PASSING_MS, (now() + deadline) / 2)
    let position = found
    while (position.behind !== null && now() < until && (await this.hasRoom())) {
      this.assertWanted()
      const next = await this.nextPosition(position, until - now())
      this.assertWanted()
      if (next === null) throw this.removed()
      if (next === undefined) break
      position = next
    }
    return position
  }

  /** Where we stand after the next change before us; null: nowhere. Undefined: nothing changed in that time. */
  private nextPosition(position: Position, ms: number): Promise<Position | null | undefined> {
    return new Promise((resolve) => {
      const settle = (next: Position | null | undefined): void => {
        clearTimeout(timer)
        this.passing = null
        resolve(next)
      }
      const timer = setTimeout(() => settle(undefined), ms)
      timer.unref()
      this.passing = settle
      this.gate.wait(position)
    })
  }

  private async hasRoom(): Promise<boolean> {
    const { children } = await this.zkSession.zk.getChildren(leasesOf(this.dir)).catch(noChildren)
    return children.length + this.weight <= this.capacity
  }

  /** Another kind of lock, or a semaphore of another size, is in use under this name. */
  private async mismatch(): Promise<number | null> {
    const { zk } = this.zkSession
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
      if (this.permitNodes.names.length === 0) {
        if (!(await this.permitNodes.agree(this.capacity))) return 'mismatch'
        this.czxid = await this.permitNodes.create(this.weight, () => this.assertWanted())
      }
      const count = await this.count()
      if (count !== 'missing') return count
      // Somebody removed ours. As long as we stand at the gate we may add them anew.
      this.assertWanted()
      await this.permitNodes.remove()
    }
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
      // Somebody may have removed them together with their directory.
      const { children } = await this.zkSession.zk
        .getChildren(leasesOf(this.dir), { watch: watcher })
        .catch(noChildren)
      if (!this.permitNodes.areAmong(children)) return 'missing'
      if (children.length <= this.capacity) {
        this.stopWatching()
        return 'held'
      }
      if (this.watcher === watcher) return 'full'
      // It fired before we could act on it, or somebody gave the claim up.
      this.zkSession.zk.unwatch(leasesOf(this.dir), 'children', watcher)
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

  private passGate<T>(then: () => T): T {
    this.stopWatching()
    this.inside = false
    const held = then()
    this.openGate()
    return held
  }

  /** Lets the next one in. If that fails, it is done when the connection is back, or, if a server refused it, a little later. */
  private openGate(): void {
    const { gate, zkSession } = this
    if (this.state !== 'held' || (gate.node === null && !gate.doubtful)) return
    gate.leave().catch(() => {
      if (zkSession.connected) setTimeout(() => this.openGate(), REFUSED_MS).unref()
    })
  }

  private moved(position: Position | null): void {
    if (this.passing !== null) return this.passing(position)
    if (this.state !== 'queued' || this.inside) return
    if (position === null) this.host.vanished(this)
    else if (position.behind !== null) this.gate.wait(position)
    else {
      this.inside = true
      this.countAgain()
    }
  }

  private assertWanted(): void {
    if (this.state === 'leaving') throw givenUp()
  }

  private stopWatching(): void {
    const { watcher } = this
    this.watcher = null
    if (watcher !== null) this.zkSession.zk.unwatch(leasesOf(this.dir), 'children', watcher)
  }
}
