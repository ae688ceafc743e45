import type { Clocks } from '../clocks.ts'
import type { Node } from '../network.ts'

export interface SessionNode {
  readonly name: string
  /** The transaction that made it: grows over all directories, for ever. */
  readonly czxid: number
}

/** What a directory's child is to somebody who asks: itself, and all children by name. */
export interface Standing {
  readonly node: SessionNode
  readonly children: readonly string[]
}

interface StoredNode extends SessionNode {
  readonly session: number
}

interface Directory {
  /** Of the next sequential child. Never goes back. */
  next: number
  readonly nodes: Map<string, StoredNode>
}

interface Session {
  readonly timeout: number
  heardAt: number
  /** Requests of a connection come in order; what is late was sent over one that is closed by now. */
  last: number
}

type Watcher = () => void
/** By path, and by who watches: nobody is told twice. */
type Watches = Map<string, Map<string, Watcher>>

/**
 * A server like ZooKeeper, or a whole ensemble of them: sessions that end when nothing is heard of them, nodes that end with
 * their session, numbers that only grow, and watches that fire once. It forgets nothing when it restarts.
 */
export class SessionServer {
  private readonly node: Pick<Node, 'clocks' | 'up'>
  private readonly clocks: Clocks
  private readonly later: (ms: number, callback: () => void) => void
  private readonly sessions = new Map<number, Session>()
  private readonly directories = new Map<string, Directory>()
  private readonly nodeWatches: Watches = new Map()
  private readonly childWatches: Watches = new Map()
  private zxid = 0

  constructor(node: Pick<Node, 'clocks' | 'up'>, later: (ms: number, callback: () => void) => void) {
    this.node = node
    this.clocks = node.clocks
    this.later = later
  }

  connect(timeout: number): number {
    const id = ++this.zxid
    this.sessions.set(id, { timeout, heardAt: this.clocks.mono(), last: 0 })
    this.lookLater(id, timeout)
    return id
  }

  /** A request of a session: its sign of life. `late`: it was overtaken, and must not be done. */
  hears(id: number, request: number): 'heard' | 'late' | 'expired' {
    const session = this.sessions.get(id)
    if (session === undefined) return 'expired'
    if (request <= session.last) return 'late'
    session.last = request
    session.heardAt = this.clocks.mono()
    return 'heard'
  }

  /** An ephemeral sequential node. */
  create(session: number, directory: string, prefix: string): SessionNode {
    const dir = this.directory(directory)
    const name = `${prefix}${String(dir.next++).padStart(10, '0')}`
    const node = { name, czxid: ++this.zxid, session }
    dir.nodes.set(name, node)
    this.fire(this.childWatches, directory)
    return node
  }

  remove(directory: string, name: string): boolean {
    const removed = this.directory(directory).nodes.delete(name)
    if (!removed) return false
    this.zxid++
    this.fire(this.nodeWatches, `${directory}/${name}`)
    this.fire(this.childWatches, directory)
    return true
  }

  /** A reader's node with the same number in the place of a writer's, in one transaction. False: there is neither. */
  downgrade(directory: string, start: string): boolean {
    const dir = this.directory(directory)
    const node = this.find(directory, start)
    if (node === undefined || node.name.includes('__READ__')) return node !== undefined
    const { session } = node
    const name = node.name.replace('__WRIT__', '__READ__')
    // Its number is an old one, but its creation counts.
    dir.next++
    dir.nodes.set(name, { name, czxid: ++this.zxid, session })
    dir.nodes.delete(node.name)
    this.fire(this.nodeWatches, `${directory}/${node.name}`)
    this.fire(this.childWatches, directory)
    return true
  }

  find(directory: string, start: string): StoredNode | undefined {
    for (const node of this.directory(directory).nodes.values()) if (node.name.startsWith(start)) return node
    return undefined
  }

  children(directory: string): readonly string[] {
    return [...this.directory(directory).nodes.keys()]
  }

  /** Fires once when the node goes. */
  watchNode(directory: string, name: string, who: string, watcher: Watcher): void {
    add(this.nodeWatches, `${directory}/${name}`, who, watcher)
  }

  /** Fires once when a child comes or goes. */
  watchChildren(directory: string, who: string, watcher: Watcher): void {
    add(this.childWatches, directory, who, watcher)
  }

  /** A new leader gives every session its whole time again, and knows of no watch. */
  restart(): void {
    for (const [id, session] of this.sessions) {
      session.heardAt = this.clocks.mono()
      this.lookLater(id, session.timeout)
    }
    this.nodeWatches.clear()
    this.childWatches.clear()
  }

  private lookLater(id: number, ms: number): void {
    this.later(this.clocks.truly(ms), () => this.expire(id))
  }

  private expire(id: number): void {
    const session = this.sessions.get(id)
    // Nobody counts while the server is away.
    if (session === undefined || !this.node.up) return
    const left = session.heardAt + session.timeout - this.clocks.mono()
    if (left > 0) return this.lookLater(id, left)
    this.sessions.delete(id)
    for (const [directory, { nodes }] of this.directories) {
      for (const { session: owner, name } of nodes.values()) if (owner === id) this.remove(directory, name)
    }
  }

  private directory(path: string): Directory {
    const known = this.directories.get(path)
    if (known !== undefined) return known
    const made: Directory = { next: 0, nodes: new Map() }
    this.directories.set(path, made)
    return made
  }

  private fire(watches: Watches, path: string): void {
    const watchers = watches.get(path)
    watches.delete(path)
    for (const watcher of watchers?.values() ?? []) watcher()
  }
}

function add(watches: Watches, path: string, who: string, watcher: Watcher): void {
  const watchers = watches.get(path) ?? new Map<string, Watcher>()
  watchers.set(who, watcher)
  watches.set(path, watchers)
}
