import { ALL } from '../../core/contract.ts'
import type { ClaimAnswer, ClaimRequest } from '../../core/contract.ts'
import { BUSY, Claim, QUEUED } from './claim.ts'
import type { ClaimHost } from './claim.ts'
import { ZooKeeperError, hasCode } from './client/index.ts'
import type { Watcher } from './client/index.ts'
import { setTimeout } from './client/time.ts'
import { readNote, REVOKE, writeNote } from './node-data.ts'
import { isWorn, positionOf } from './position.ts'
import type { Position, QueueKind } from './position.ts'
import type { ZkSession } from './zk-session.ts'
import { semaphoreCapacity } from './semaphore.ts'
import { OwnNode } from './own-node.ts'
import { givenUp } from './failure.ts'

/** Readers come and go beside each other: who looks at every change would look all the time. */
const READERS_LOOK_EVERY_MS = 100

/** A mutex, a reader or a writer: a node in the queue of its directory. */
export class QueueClaim extends Claim {
  private kind: QueueKind
  private ownNode: OwnNode
  /** It looks after its node; before, the section may be over at any moment. */
  private attended = false
  private replacing: Promise<bigint | undefined> | null = null
  private downgrading: Promise<boolean> | null = null

  constructor(request: ClaimRequest, dir: string, zkSession: ZkSession, host: ClaimHost) {
    super(request, dir, zkSession, host)
    const { capacity, weight } = request
    this.kind = capacity === 1 ? 'lock' : weight === ALL ? 'write' : 'read'
    this.ownNode = this.newOwnNode()
  }

  async enter(): Promise<ClaimAnswer> {
    const { ownNode, state } = this
    const position = ownNode.node === null ? await ownNode.join() : await ownNode.look()
    // Whoever removes it meanwhile has its own answer.
    if (this.state === 'leaving') throw givenUp()
    if (position === null || ownNode.node === null) throw this.removed()
    if (state === 'held') return this.heldAnswer()
    if (position.mismatch !== null) return this.refuse({ kind: 'mismatch', capacity: position.mismatch })
    if (position.semaphore) {
      const capacity = await semaphoreCapacity(this.zkSession.zk, this.dir)
      if (capacity !== null) return this.refuse({ kind: 'mismatch', capacity })
    }
    if (!ownNode.mayStay(position)) return this.refuse(BUSY)
    if (position.behind === null) return this.hold(ownNode.node.czxid, position.contended)
    if (this.whenBusy === 'try') return this.refuse(BUSY)
    this.state = 'queued'
    ownNode.wait(position)
    return QUEUED
  }

  async check(): Promise<boolean> {
    const { ownNode } = this
    if (this.state === 'queued') return ownNode.check()
    const position = await ownNode.glance()
    if (position !== null) this.contended = position.contended
    return position !== null
  }

  protected override get proven(): boolean {
    return this.ownNode.proven
  }

  attend(): void {
    this.attended = true
    this.watchOwnNode()
    if (!this.contended) this.watchForWaiters()
  }

  resume(): void {
    if (this.state === 'queued' && !this.ownNode.waiting) this.ownNode.lookAgain()
  }

  leave(): Promise<boolean> {
    return this.replacing === null ? this.ownNode.leave() : this.leaveAfter(this.replacing)
  }

  /** A node that is just being made is found when it is there, and not before. */
  private async leaveAfter(replacing: Promise<unknown>): Promise<boolean> {
    await replacing.catch(() => undefined)
    return this.ownNode.leave()
  }

  /** A writer goes on as a reader, in its own place. False: the node is gone. */
  downgrade(): Promise<boolean> {
    this.downgrading ??= this.becomeReader().finally(() => void (this.downgrading = null))
    return this.downgrading
  }

  private async becomeReader(): Promise<boolean> {
    const { ownNode } = this
    if (this.kind !== 'write') return true
    if (this.replacing !== null)
      throw new ZooKeeperError('OPERATION_TIMEOUT', 'The node is just being replaced')
    const note = readNote(Buffer.from(this.data))
    const czxid = ownNode.node?.czxid
    if (note === null || czxid === undefined) return false
    if (!(await ownNode.becomeReader(writeNote({ ...note, weight: 1, czxid })))) return false
    this.kind = 'read'
    this.data = writeNote({ ...note, weight: 1 })
    // Who waited may have been a reader, which is in by now; and the watch was on the old node.
    this.contended = false
    if (this.state === 'held' && this.attended) this.attend()
    return true
  }

  protected async replace(): Promise<bigint | undefined> {
    if (this.downgrading !== null || this.ownNode.heir !== null) return undefined
    this.replacing = this.replaceNode().finally(() => void (this.replacing = null))
    return this.replacing
  }

  /** The new node stands directly behind the old one, or not at all. */
  private async replaceNode(): Promise<bigint | undefined> {
    const old = this.ownNode
    const fresh = this.newOwnNode()
    // What an earlier attempt has left, if that is not known to be gone, is still to be looked for after this one.
    const { doubtful } = old
    // Until it has gone well there may be two nodes; both are found by the beginning of their name when we leave.
    old.doubtful = true
    const position = await fresh.join()
    const own = fresh.node
    const alone =
      position !== null &&
      (position.behind === null || (position.ahead === 1 && position.behind.name === old.node?.name))
    if (!alone || own === null || isWorn(own)) {
      await fresh.leave()
      old.doubtful = doubtful
      return undefined
    }
    old.doubtful = false
    fresh.doubtful = true
    this.ownNode = fresh
    await old.leave()
    fresh.doubtful = doubtful
    this.attend()
    return own.czxid
  }

  private newOwnNode(): OwnNode {
    const { dir, kind, prefix, data, host } = this
    const moved = (position: Position | null): void => this.moved(position)
    return new OwnNode(this.zkSession.zk, {
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
  private moved(position: Position | null): void {
    const { ownNode } = this
    if (this.state !== 'queued') return
    if (position === null || ownNode.node === null) this.host.vanished(this)
    else if (position.behind === null) this.push(ownNode.node.czxid, position.contended)
    else ownNode.wait(position)
  }

  /** Removal by force, and Curator's way to ask a holder to let go. */
  private watchOwnNode(): void {
    const { ownNode, zkSession } = this
    const { path } = ownNode
    const concerned = (): boolean =>
      this.state === 'held' && this.ownNode === ownNode && ownNode.path === path
    // While a reader's node takes its place, it goes by our own doing; what becomes of that is known with the answer.
    const gone = (): void => {
      if (ownNode.heir === null) this.host.vanished(this)
    }
    const watch: Watcher = ({ type }) => {
      if (!concerned()) return
      if (type === 'deleted') gone()
      else this.watchOwnNode()
    }
    zkSession.zk.getData(path, { watch }).then(
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
    const { ownNode, zkSession, dir, kind } = this
    const concerned = (): boolean =>
      this.state === 'held' && this.ownNode === ownNode && this.kind === kind && !this.contended
    const again = (): void => {
      if (concerned()) this.watchForWaiters()
    }
    const watch: Watcher = () => {
      if (kind === 'read') setTimeout(again, READERS_LOOK_EVERY_MS).unref()
      else again()
    }
    zkSession.zk.getChildren(dir, { watch }).then(
      ({ children }) => {
        if (concerned() && ownNode.node !== null && positionOf(children, ownNode.node)?.contended === true)
          this.nowContended()
      },
      // The next renewal tells as well.
      () => undefined,
    )
  }
}
