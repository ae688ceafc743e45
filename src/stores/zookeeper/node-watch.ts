import { hasCode } from './client/index.ts'
import type { Watcher, ZooKeeper } from './client/index.ts'

/** Tells when a node goes: once, also if it was gone before. Set with getData: on a missing node that leaves no watch behind. */
export class NodeWatch {
  /** The node that went last of those that were watched. */
  gone = ''
  private readonly zk: ZooKeeper
  private readonly went: () => void
  private path = ''
  private watcher: Watcher | null = null

  constructor(zk: ZooKeeper, went: () => void) {
    this.zk = zk
    this.went = went
  }

  /** What is watched; null: nothing, or the server could not be asked. */
  get watched(): string | null {
    return this.watcher === null ? null : this.path
  }

  set(path: string): void {
    if (this.watched === path) return
    this.stop()
    const watcher: Watcher = ({ type }) => {
      if (this.watcher !== watcher) return
      this.watcher = null
      if (type === 'deleted') this.tell(path)
      // Somebody wrote something into it, or something else happened in its directory.
      else this.set(path)
    }
    this.path = path
    this.watcher = watcher
    this.begin(path, watcher).then(
      (there) => {
        if (this.watcher !== watcher) this.forget(path, watcher)
        else if (!there) {
          this.watcher = null
          this.forget(path, watcher)
          this.tell(path)
        }
      },
      () => {
        if (this.watcher === watcher) this.watcher = null
      },
    )
  }

  /**
   * False: there is no such node. Of a node that they would not let us read servers tell us nothing; that it goes is then seen in
   * its directory, together with all else that happens there.
   */
  private begin(path: string, watch: Watcher): Promise<boolean> {
    return this.zk.getData(path, { watch }).then(
      () => true,
      (error: unknown) => {
        if (hasCode(error, 'NO_NODE')) return false
        if (!hasCode(error, 'NO_AUTH')) throw error
        const { dir, name } = partsOf(path)
        return this.zk.getChildren(dir, { watch }).then(({ children }) => children.includes(name))
      },
    )
  }

  private forget(path: string, watcher: Watcher): void {
    this.zk.unwatch(path, 'data', watcher)
    this.zk.unwatch(partsOf(path).dir, 'children', watcher)
  }

  stop(): void {
    const { watcher, path } = this
    this.watcher = null
    if (watcher !== null) this.forget(path, watcher)
  }

  private tell(path: string): void {
    this.gone = path
    this.went()
  }
}

function partsOf(path: string): { readonly dir: string; readonly name: string } {
  const slash = path.lastIndexOf('/')
  return { dir: path.slice(0, slash), name: path.slice(slash + 1) }
}
