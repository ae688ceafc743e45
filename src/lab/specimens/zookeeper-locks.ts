import type { ZooKeeper } from '../../stores/zookeeper/client/index.ts'
import { hasCode } from '../../stores/zookeeper/client/index.ts'

/** The designs that wake everybody. Each counts how often it was woken for nothing. */
export interface CountedLock {
  acquire(): Promise<void>
  release(): Promise<void>
}

/** Who creates the node has the lock; the others watch it, and all of them try again when it goes. */
export class UniqueNodeLock implements CountedLock {
  private readonly zookeeper: ZooKeeper
  private readonly path: string

  constructor(zookeeper: ZooKeeper, path: string) {
    this.zookeeper = zookeeper
    this.path = path
  }

  async acquire(): Promise<void> {
    while (!(await this.tryAcquire())) {
      await new Promise<void>((resolve, reject) => {
        this.zookeeper
          .exists(this.path, { watch: () => resolve() })
          .then((stat) => void (stat === null && resolve()), reject)
      })
    }
  }

  async release(): Promise<void> {
    await this.zookeeper.delete(this.path)
  }

  private async tryAcquire(): Promise<boolean> {
    try {
      await this.zookeeper.create(this.path, { mode: 'ephemeral' })
      return true
    } catch (error) {
      if (hasCode(error, 'NODE_EXISTS')) return false
      throw error
    }
  }
}

/** Nodes in a row, the first one has the lock, and everybody watches the row. `kind` says who may go together. */
export class ParentWatchLock implements CountedLock {
  private readonly zookeeper: ZooKeeper
  private readonly parent: string
  private readonly kind: 'read' | 'write'
  private own = ''

  constructor(zookeeper: ZooKeeper, parent: string, kind: 'read' | 'write' = 'write') {
    this.zookeeper = zookeeper
    this.parent = parent
    this.kind = kind
  }

  async acquire(): Promise<void> {
    const { path } = await this.zookeeper.create(`${this.parent}/${this.kind}-`, {
      mode: 'ephemeral-sequential',
    })
    this.own = path
    for (;;) {
      let wake = (): void => {}
      const woken = new Promise<void>((resolve) => void (wake = resolve))
      const { children } = await this.zookeeper.getChildren(this.parent, { watch: () => wake() })
      if (this.isMyTurn(children)) return
      await woken
    }
  }

  async release(): Promise<void> {
    await this.zookeeper.delete(this.own)
  }

  private isMyTurn(children: readonly string[]): boolean {
    const place = (node: string): number => Number(node.slice(-10))
    const before = children.filter((node) => place(node) < place(this.own))
    return this.kind === 'read' ? !before.some((node) => node.startsWith('write')) : before.length === 0
  }
}
