import type { Acl, Created, ZooKeeper } from './client/index.ts'
import { removeNode } from './remove-node.ts'
import { hasCode } from './client/index.ts'
import { SUFFIX } from './position.ts'
import { parseCapacity } from './semaphore.ts'
import { noChildren } from './own-node.ts'

export interface LeasesOptions {
  readonly dir: string
  readonly prefix: string
  readonly data: string
  readonly acl: readonly Acl[]
}

/** The nodes of one claim's permits below `leases`: made together, found again by their name, removed together. */
export class PermitNodes {
  names: readonly string[] = []
  private readonly zk: ZooKeeper
  private readonly options: LeasesOptions
  /** Some may have been made without our hearing of it. */
  private doubtful = false

  constructor(zk: ZooKeeper, options: LeasesOptions) {
    this.zk = zk
    this.options = options
  }

  areAmong(children: readonly string[]): boolean {
    return this.names.length > 0 && this.names.every((name) => children.includes(name))
  }

  /** At the gate nobody else can change it: the first user of an idle semaphore says how large it is. False: it was said. */
  async agree(capacity: number): Promise<boolean> {
    const { dir, acl } = this.options
    const text = String(capacity)
    for (;;) {
      try {
        const { data, stat } = await this.zk.getData(dir)
        if (data.toString() === text) return true
        if (stat.numChildren > 0) return parseCapacity(data) === null
        await this.zk.setData(dir, text, stat.version)
        return true
      } catch (error) {
        if (!hasCode(error, 'NO_NODE')) throw error
      }
      await this.zk.create(dir, { mode: 'container', data: text, acl }).catch((error: unknown) => {
        if (!hasCode(error, 'NODE_EXISTS')) throw error
      })
    }
  }

  /**
   * Returns the transaction of the first. What a failure leaves is found by `remove`. `assertWanted` is asked directly before: what
   * is made for somebody who has left meanwhile, nobody would remove.
   */
  async create(count: number, assertWanted: () => void): Promise<bigint> {
    if (this.doubtful) await this.removeStrays()
    assertWanted()
    const { dir, prefix, data, acl } = this.options
    const one = (): Promise<Created> =>
      this.zk.create(`${dir}/${prefix}${SUFFIX.lease}`, { mode: 'ephemeral-sequential', data, acl })
    this.doubtful = true
    const results = await Promise.allSettled(Array.from({ length: count }, one))
    const made = results.map((result) => {
      if (result.status === 'rejected') throw result.reason
      return result.value
    })
    this.doubtful = false
    this.names = made.map(({ path }) => path.slice(path.lastIndexOf('/') + 1))
    return made[0]?.stat.czxid ?? 0n
  }

  /** New ones in the place of the old. */
  async replace(count: number, assertWanted: () => void): Promise<bigint> {
    const old = this.names
    const czxid = await this.create(count, assertWanted)
    // Until they are gone, `remove` and the next `create` look for them.
    this.doubtful = true
    await Promise.all(old.map((name) => this.removeOne(name)))
    this.doubtful = false
    return czxid
  }

  /** False: there were none. */
  async remove(): Promise<boolean> {
    const names = this.doubtful ? await this.find() : this.names
    const removed = await Promise.all(names.map((name) => this.removeOne(name)))
    this.names = []
    this.doubtful = false
    return removed.some(Boolean)
  }

  /** What was made without our hearing of it, or should be gone. Those that a grant rests on stay. */
  private async removeStrays(): Promise<void> {
    const strays = (await this.find()).filter((name) => !this.names.includes(name))
    await Promise.all(strays.map((name) => this.removeOne(name)))
  }

  private async find(): Promise<string[]> {
    const { dir, prefix } = this.options
    const [, { children }] = await Promise.all([
      this.zk.sync(dir),
      this.zk.getChildren(dir).catch(noChildren),
    ])
    return children.filter((name) => name.startsWith(prefix))
  }

  private removeOne(name: string): Promise<boolean> {
    return removeNode(this.zk, `${this.options.dir}/${name}`)
  }
}
