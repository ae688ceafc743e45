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
      // Somebody wrote something into it.
      else this.set(path)
    }
    this.path = path
    this.watcher = watcher
    this.zk.getData(path, { watch: watcher }).then(
      () => {
        if (this.watcher !== watcher) this.zk.unwatch(path, 'data', watcher)
      },
      (error: unknown) => {
        if (this.watcher !== watcher) return
        this.watcher = null
        if (hasCode(error, 'NO_NODE')) this.tell(path)
      },
    )
  }

  stop(): void {
    const { watcher, path } = this
    this.watcher = null
    if (watcher !== null) this.zk.unwatch(path, 'data', watcher)
  }

  private tell(path: string): void {
    this.gone = path
    this.went()
  }
}
