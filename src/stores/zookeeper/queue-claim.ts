import { ALL } from '../../core/contract.ts'
import type { ClaimAnswer, ClaimRequest } from '../../core/contract.ts'
import { BUSY, Claim, QUEUED } from './claim.ts'
import type { ClaimHost } from './claim.ts'
import { ZooKeeperError, hasCode } from './client/index.ts'
import type { Watcher } from './client/index.ts'
import { setTimeout } from './client/time.ts'
import { readNote, REVOKE, writeNote } from './node-data.ts'
import { isWorn, placeOf } from './place.ts'
import type { Place, QueueKind } from './place.ts'
import type { Seat } from './seat.ts'
import { semaphoreCapacity } from './semaphore.ts'
import { Spot } from './spot.ts'
import { givenUp } from './unknown.ts'

/** Readers come and go beside each other: who looks at every change would look all the time. */
const READERS_LOOK_EVERY_MS = 100

/** A mutex, a reader or a writer: a node in the queue of its directory. */
export class QueueClaim extends Claim {
  private kind: QueueKind
  private spot: Spot
  /** It looks after its node; before, the section may be over at any moment. */
  private attended = false
  private replacing: Promise<bigint | undefined> | null = null
  private downgrading: Promise<boolean> | null = null

  constructor(request: ClaimRequest, dir: string, seat: Seat, host: ClaimHost) {
    super(request, dir, seat, host)
    const { capacity, weight } = request
    this.kind = capacity === 1 ? 'lock' : weight === ALL ? 'write' : 'read'
    this.spot = this.newSpot()
  }

  async enter(): Promise<ClaimAnswer> {
    const { spot, state } = this
    const place = spot.node === null ? await spot.join() : await spot.look()
    // Whoever removes it meanwhile has its own answer.
    if (this.state === 'leaving') throw givenUp()
    if (place === null || spot.node === null) throw this.removed()
    if (state === 'held') return this.heldAnswer()
    if (place.mismatch !== null) return this.refuse({ kind: 'mismatch', capacity: place.mismatch })
    if (place.semaphore) {
      const capacity = await semaphoreCapacity(this.seat.zk, this.dir)
      if (capacity !== null) return this.refuse({ kind: 'mismatch', capacity })
    }
    if (!spot.mayStay(place)) return this.refuse(BUSY)
    if (place.behind === null) return this.hold(spot.node.czxid, place.contended)
    if (this.whenBusy === 'try') return this.refuse(BUSY)
    this.state = 'queued'
    spot.wait(place)
    return QUEUED
  }

  async check(): Promise<boolean> {
    const { spot } = this
    if (this.state === 'queued') return spot.check()
    const place = await spot.glance()
    if (place !== null) this.contended = place.contended
    return place !== null
  }

  protected override get proven(): boolean {
    return this.spot.proven
  }

  attend(): void {
    this.attended = true
    this.watchOwnNode()
    if (!this.contended) this.watchForWaiters()
  }

  resume(): void {
    if (this.state === 'queued' && !this.spot.waiting) this.spot.lookAgain()
  }

  leave(): Promise<boolean> {
    return this.replacing === null ? this.spot.leave() : this.leaveAfter(this.replacing)
  }

  /** A node that is just being made is found when it is there, and not before. */
  private async leaveAfter(replacing: Promise<unknown>): Promise<boolean> {
    await replacing.catch(() => undefined)
    return this.spot.leave()
  }

  /** A writer goes on as a reader, in its own place. False: the node is gone. */
  downgrade(): Promise<boolean> {
    this.downgrading ??= this.becomeReader().finally(() => void (this.downgrading = null))
    return this.downgrading
  }

  private async becomeReader(): Promise<boolean> {
    const { spot } = this
    if (this.kind !== 'write') return true
    if (this.replacing !== null)
      throw new ZooKeeperError('OPERATION_TIMEOUT', 'The node is just being replaced')
    const note = readNote(Buffer.from(this.data))
    const czxid = spot.node?.czxid
    if (note === null || czxid === undefined) return false
    if (!(await spot.becomeReader(writeNote({ ...note, weight: 1, czxid })))) return false
    this.kind = 'read'
    this.data = writeNote({ ...note, weight: 1 })
    // Who waited may have been a reader, which is in by now; and the watch was on the old node.
    this.contended = false
    if (this.state === 'held' && this.attended) this.attend()
    return true
  }

  protected async replace(): Promise<bigint | undefined> {
    if (this.downgrading !== null || this.spot.heir !== null) return undefined
    this.replacing = this.replaceNode().finally(() => void (this.replacing = null))
    return this.replacing
  }

  /** The new node stands directly behind the old one, or not at all. */
  private async replaceNode(): Promise<bigint | undefined> {
    const old = this.spot
    const fresh = this.newSpot()
    // What an earlier attempt has left, if that is not known to be gone, is still to be looked for after this one.
    const { doubtful } = old
    // Until it has gone well there may be two nodes; both are found by the beginning of their name when we leave.
    old.doubtful = true
    const place = await fresh.join()
    const own = fresh.node
    const alone =
      place !== null && (place.behind === null || (place.ahead === 1 && place.behind.name === old.node?.name))
    if (!alone || own === null || isWorn(own)) {
      await fresh.leave()
      old.doubtful = doubtful
      return undefined
    }
    old.doubtful = false
    fresh.doubtful = true
    this.spot = fresh
    await old.leave()
    fresh.doubtful = doubtful
    this.attend()
    return own.czxid
  }

  private newSpot(): Spot {
    const { dir, kind, prefix, data, host } = this
    const moved = (place: Place | null): void => this.moved(place)
    return new Spot(this.seat.zk, {
      dir,
      kind,
      prefix,
      data,
      acl: host.acl,
      directories: host.directories,
      moved,
    })
  }

  /** Something changed before us while we were waiting. */
  private moved(place: Place | null): void {
    const { spot } = this
    if (this.state !== 'queued') return
    if (place === null || spot.node === null) this.host.vanished(this)
    else if (place.behind === null) this.push(spot.node.czxid, place.contended)
    else spot.wait(place)
  }

  /** Removal by force, and Curator's way to ask a holder to let go. */
  private watchOwnNode(): void {
    const { spot, seat } = this
    const { path } = spot
    const concerned = (): boolean => this.state === 'held' && this.spot === spot && spot.path === path
    // While a reader's node takes its place, it goes by our own doing; what becomes of that is known with the answer.
    const gone = (): void => {
      if (spot.heir === null) this.host.vanished(this)
    }
    const watch: Watcher = ({ type }) => {
      if (!concerned()) return
      if (type === 'deleted') gone()
      else this.watchOwnNode()
    }
    seat.zk.getData(path, { watch }).then(
      ({ data }) => {
        if (this.state === 'held' && data.toString() === REVOKE) this.host.revocationAsked(this)
      },
      (error: unknown) => {
        if (concerned() && hasCode(error, 'NO_NODE')) gone()
      },
    )
  }

  /** Fires at the first who joins, or at our own release; then there is nothing more to hear. */
  private watchForWaiters(): void {
    const { spot, seat, dir, kind } = this
    const concerned = (): boolean =>
      this.state === 'held' && this.spot === spot && this.kind === kind && !this.contended
    const again = (): void => {
      if (concerned()) this.watchForWaiters()
    }
    const watch: Watcher = () => {
      if (kind === 'read') setTimeout(again, READERS_LOOK_EVERY_MS).unref()
      else again()
    }
    seat.zk.getChildren(dir, { watch }).then(
      ({ children }) => {
        if (concerned() && spot.node !== null && placeOf(children, spot.node)?.contended === true)
          this.nowContended()
      },
      // The next renewal tells as well.
      () => undefined,
    )
  }
}
