import type { Acl, Written, ZooKeeper } from './client/index.ts'
import { removeNode } from './remove-node.ts'
import { ZooKeeperError, hasCode } from './client/index.ts'
import { momentOf, NEVER } from './client/moment.ts'
import { now, wall } from './client/time.ts'
import type { Directories } from './directories.ts'
import { NodeWatch } from './node-watch.ts'
import { ALONE, SUFFIX, isNextInLine, isWorn, mayStay, parseNode, positionOf } from './position.ts'
import type { Position, QueueKind, QueueNode } from './position.ts'
import { isFresh } from './proof.ts'
import { givenUp, mayHaveHappened } from './failure.ts'

export interface OwnNodeOptions {
  readonly dir: string
  readonly kind: QueueKind
  /** How the node's name begins: see `protection`. */
  readonly prefix: string
  readonly data: string
  readonly acl: readonly Acl[]
  readonly directories: Directories
  /** Called after something changed before us, with where we stand now; null: our node is gone. */
  readonly moved: (position: Position | null) => void
}

export interface CreatedNode extends QueueNode {
  readonly czxid: bigint
}

/** Directories that vanish again and again while a node is put into them: an administrator at work. */
const MAX_ATTEMPTS = 4
const CLOCKS = { mono: now, wall }
const NO_NUMBER = 'The server gave a node a name without a number'

/**
 * One node in one queue: an ephemeral sequential node below `dir`, found again after a lost reply, and a watch on the one
 * node before it that matters.
 */
export class OwnNode {
  node: CreatedNode | null = null
  /** A node may have been created without our hearing of it. */
  doubtful = false
  /** The node that is taking the place of our own, or has without our hearing of it: see `becomeReader`. */
  heir: CreatedNode | null = null
  private readonly options: OwnNodeOptions
  private readonly zk: ZooKeeper
  private left = false
  /** Under way. */
  private creating: Promise<unknown> | null = null
  /** When we last looked, nobody stood before us. */
  private first = false
  /** Where we stood when we last looked and had to wait. */
  private seen: Position | null = null
  private looking = false
  private proof = NEVER
  /** The node before us, and the one before that. */
  private readonly nearest: NodeWatch
  private readonly second: NodeWatch

  constructor(zk: ZooKeeper, options: OwnNodeOptions) {
    this.zk = zk
    this.options = options
    this.nearest = new NodeWatch(zk, () => this.nearestWent())
    this.second = new NodeWatch(zk, () => this.secondWent())
  }

  get path(): string {
    return `${this.options.dir}/${this.node?.name ?? ''}`
  }

  get waiting(): boolean {
    return this.nearest.watched !== null
  }

  /** It was said a moment ago by way of the leader that our session stands. */
  get proven(): boolean {
    return isFresh(this.proof, CLOCKS)
  }

  /** Puts the node into the queue and looks around. */
  join(): Promise<Position | null> {
    const { dir, directories } = this.options
    if (this.doubtful || this.left || !directories.isQuiet(dir)) return this.joinAndLook()
    // Where nobody else comes, the number of our node is answer enough, and a list would only cost the server.
    return this.create().then((made) => {
      if (made instanceof Error) {
        if (!hasCode(made, 'NO_NODE')) throw made
        directories.gone(dir)
        return this.joinAndLook(2)
      }
      if (!directories.entered(dir, made)) return this.look()
      this.first = true
      return ALONE
    })
  }

  /** In one flight: a session's reads see its own writes. */
  private async joinAndLook(attempts = 1): Promise<Position | null> {
    if (this.doubtful) await this.findAgain()
    const { dir, directories } = this.options
    for (let attempt = attempts; this.node === null; attempt++) {
      if (this.left) throw givenUp()
      const directory = this.makeDirectory(attempt === 1)
      const creating = this.create()
      const listing = this.zk.getChildren(dir).catch(asError)
      const made = await creating
      if (!(made instanceof Error)) {
        const alone = directories.entered(dir, made)
        const listed = await listing
        if (listed instanceof Error) throw listed
        const position = this.positionAmong(listed.children)
        if (position !== null) return position
        // A list from before a creation that had to be sent again.
        if (!alone) break
        this.first = true
        return ALONE
      }
      if (!hasCode(made, 'NO_NODE')) throw made
      directories.gone(dir)
      const failure = await directory
      if (failure !== undefined && !hasCode(failure, 'NO_NODE')) throw failure
      if (attempt === MAX_ATTEMPTS) throw made
    }
    return this.look()
  }

  /** In the same flight as what needs it. At first only the last part, since the rest is nearly always there. */
  private async makeDirectory(atFirst: boolean): Promise<Error | undefined> {
    const { dir, acl, directories } = this.options
    if (atFirst && directories.has(dir)) return undefined
    try {
      await (atFirst ? this.zk.create(dir, { mode: 'container', acl }) : this.zk.createPath(dir, { acl }))
      return undefined
    } catch (error) {
      return hasCode(error, 'NODE_EXISTS') ? undefined : (error as Error)
    }
  }

  private create(): Promise<CreatedNode | Error> {
    const { dir, prefix, kind, data, acl } = this.options
    const path = `${dir}/${prefix}${SUFFIX[kind]}`
    const proof = momentOf(CLOCKS)
    const made = ({ path: full, zxid: czxid }: Written): CreatedNode | Error => {
      this.creating = null
      // The server appended it.
      const sequence = Number(full.slice(path.length))
      if (!Number.isInteger(sequence)) return new ZooKeeperError('PROTOCOL', NO_NUMBER)
      this.doubtful = false
      this.node = { name: full.slice(dir.length + 1), kind, sequence, czxid }
      this.proof = proof
      return this.node
    }
    const failed = (error: Error): Error => {
      this.creating = null
      this.doubtful = mayHaveHappened(error)
      return error
    }
    this.doubtful = true
    const creating = this.zk
      .write({ kind: 'create', path, mode: 'ephemeral-sequential', data, acl, unique: true })
      .then(made, failed)
    this.creating = creating
    return creating
  }

  /**
   * Where we stand; null: our node is gone. By a majority, which decides over sessions: a server that has lost it goes on to
   * answer for a while.
   */
  async look(): Promise<Position | null> {
    const { dir } = this.options
    const proof = momentOf(CLOCKS)
    const [, { children }] = await Promise.all([this.zk.confirm(dir), this.list()])
    this.proof = proof
    return this.positionAmong(children)
  }

  /** Where we stand by what this server knows. */
  async glance(): Promise<Position | null> {
    const { children } = await this.list()
    return this.positionAmong(children)
  }

  /** Somebody may have removed the directory, with all that was in it. */
  private list(): Promise<{ readonly children: readonly string[] }> {
    return this.zk.getChildren(this.options.dir).catch(noChildren)
  }

  /** False: the directory's numbers are coming to their end, and it has to be emptied. Leave, and come back. */
  mayStay(position: Position): boolean {
    return this.node !== null && mayStay(this.node, position)
  }

  private positionAmong(children: readonly string[]): Position | null {
    const { node, heir } = this
    const position =
      (node === null ? null : positionOf(children, node)) ??
      (heir === null ? null : positionOf(children, heir))
    this.first = position !== null && position.ahead === 0 && !position.semaphore
    return position
  }

  /**
   * Has `moved` called when it may be our turn. A lock also hears when the node before its neighbour goes: then it looks, and
   * knows by the time its neighbour goes that nobody else is left.
   */
  wait(position: Position): void {
    const { behind, beyond } = position
    if (behind === null || this.left) return
    this.seen = position
    const path = this.pathOf(behind)
    // It went after the list was made.
    if (path === this.nearest.gone) return this.nearestWent()
    this.nearest.set(path)
    if (beyond !== null && this.options.kind === 'lock') this.second.set(this.pathOf(beyond))
  }

  /**
   * Whoever stood alone before us is gone, and nobody can come in between: it is our turn, and nobody has to be asked if we know
   * that our session stands, and that somebody waits behind us. In every other case we look: that it went does not make
   * it our turn, since it may have been waiting, and given up.
   */
  private nearestWent(): void {
    const { seen } = this
    if (this.looking || this.left) return
    if (seen === null || !isNextInLine(this.options, seen) || !this.proven) return this.lookAgain()
    this.first = !seen.semaphore
    this.options.moved({ ...seen, behind: null, ahead: 0 })
  }

  private secondWent(): void {
    const { beyond } = this.seen ?? ALONE
    if (beyond !== null && this.second.gone === this.pathOf(beyond)) this.lookAgain()
  }

  /** Looks, and has `moved` called with what is seen. After a failure nothing is: the next connection brings the next look. */
  lookAgain(): void {
    if (this.looking || this.left) return
    this.looking = true
    this.look().then(
      (position) => {
        this.looking = false
        if (!this.left) this.options.moved(position)
      },
      () => void (this.looking = false),
    )
  }

  /** Whether our node and the one before us are still there; the second is a reason to look again, not an answer. */
  async check(): Promise<boolean> {
    const { watched } = this.nearest
    const before = watched !== null && isThere(this.zk, watched)
    const [own, behind] = await Promise.all([isThere(this.zk, this.path), before])
    if (own && !behind) this.lookAgain()
    return own
  }

  /**
   * A writer's node gives way to a reader's with the same number, in one transaction: at no time is its place in the queue empty.
   * False: it is gone. Can be repeated after a failure; if it had happened, the new node is in the way of a second one.
   */
  async becomeReader(data: string): Promise<boolean> {
    if (this.doubtful) await this.removeStrays()
    const { node, path } = this
    const { dir, prefix, acl } = this.options
    if (node === null || this.left) return false
    const name = prefix + SUFFIX.read + node.name.slice(prefix.length + SUFFIX.write.length)
    const heir: CreatedNode = { ...node, name, kind: 'read' }
    this.heir = heir
    this.doubtful = true
    try {
      await this.zk.transaction([
        { kind: 'create', path: `${dir}/${name}`, mode: 'ephemeral', data, acl },
        { kind: 'delete', path },
      ])
    } catch (error) {
      if (hasCode(error, 'NO_NODE')) return false
      if (!hasCode(error, 'NODE_EXISTS')) throw error
    }
    this.node = heir
    this.heir = null
    this.doubtful = false
    return true
  }

  /** Takes the node away; false: it was not there. Can be repeated after a failure. */
  leave(): Promise<boolean> {
    this.left = true
    this.stopWaiting()
    if (this.node === null || this.doubtful || this.creating !== null) return this.leaveInDoubt()
    return this.removeOwn(this.node)
  }

  private async leaveInDoubt(): Promise<boolean> {
    // It may have to be sent again by itself: before it is answered there is nothing to find.
    if (this.creating !== null) await this.creating
    if (!this.doubtful) return this.node === null ? false : this.removeOwn(this.node)
    const found = await this.find()
    await Promise.all(found.map((name) => this.remove(name)))
    this.doubtful = false
    this.node = null
    return found.length > 0
  }

  private removeOwn(node: CreatedNode): Promise<boolean> {
    return this.remove(node.name).then((there) => {
      const { dir, kind, directories } = this.options
      // Not after `becomeReader`: its creation counted too, so the number says nothing about those that follow.
      if (there && this.first && node.kind === kind) directories.left(dir, node)
      this.node = null
      if (isWorn(node)) this.removeDirectory()
      return there
    })
  }

  /** It is made anew by whoever comes next. While others are in it, it stays, and the last of them does the same. */
  private removeDirectory(): void {
    const { dir, directories } = this.options
    directories.gone(dir)
    removeNode(this.zk, dir).catch(() => undefined)
  }

  private pathOf({ name }: QueueNode): string {
    return `${this.options.dir}/${name}`
  }

  private remove(name: string): Promise<boolean> {
    return removeNode(this.zk, `${this.options.dir}/${name}`)
  }

  private stopWaiting(): void {
    this.nearest.stop()
    this.second.stop()
  }

  /** A writer's node that was to take the place of ours, and did not, would keep readers out for as long as we read. */
  private async removeStrays(): Promise<void> {
    const own = [this.node?.name, this.heir?.name]
    const strays = (await this.find()).filter((name) => !own.includes(name))
    await Promise.all(strays.map((name) => this.remove(name)))
  }

  /** A create whose reply was lost may have happened: take what it made, and only that. */
  private async findAgain(): Promise<void> {
    const [first, ...others] = await this.find()
    await Promise.all(others.map((name) => this.remove(name)))
    const stat = first === undefined ? null : await this.zk.exists(`${this.options.dir}/${first}`)
    // Not before: a second node would stand in line behind the first.
    this.doubtful = false
    if (first !== undefined && stat !== null) this.node = { ...nodeAt(first), czxid: stat.czxid }
  }

  /**
   * Our nodes by the beginning of their name. After `sync`, because a create that another server took from us may otherwise be
   * seen later than now: it is through before that, or refused for ever since the session has moved. A node of a former
   * session of ours is none of ours: it is about to vanish.
   */
  private async find(): Promise<string[]> {
    const { dir, prefix } = this.options
    const [, { children }] = await Promise.all([
      this.zk.sync(dir),
      this.zk.getChildren(dir).catch(noChildren),
    ])
    const names = children.filter((name) => name.startsWith(prefix)).sort()
    const stats = await Promise.all(names.map((name) => this.zk.exists(`${dir}/${name}`)))
    return names.filter((_, index) => stats[index]?.ephemeralOwner === this.zk.sessionId)
  }
}

function nodeAt(path: string): QueueNode {
  const node = parseNode(path.slice(path.lastIndexOf('/') + 1))
  if (node === null) throw new ZooKeeperError('PROTOCOL', NO_NUMBER)
  return node
}

const asError = (error: Error): Error => error

/** Of a node that they would not let us read, servers from 3.9.5 on say nothing else either; of one that is not there they say that. */
async function isThere(zk: ZooKeeper, path: string): Promise<boolean> {
  try {
    return (await zk.exists(path)) !== null
  } catch (error) {
    if (hasCode(error, 'NO_AUTH')) return true
    throw error
  }
}

export function noChildren(error: unknown): { children: string[] } {
  if (hasCode(error, 'NO_NODE')) return { children: [] }
  throw error
}
