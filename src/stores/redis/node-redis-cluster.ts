import type { Node, SubscriberConnection, SubscriberEvents } from './link.ts'
import { listenThrough, NodeRedisLink, reconnect } from './node-redis.ts'
import type { NodeRedisBase, PlainClient } from './node-redis.ts'
import { firstSlots, inOrder, slotOf } from './slots.ts'

/** As `createCluster` makes it. */
export interface NodeRedisCluster extends NodeRedisBase {
  readonly masters: readonly object[]
  sendCommand(firstKey: string | undefined, isReadonly: boolean, args: string[]): Promise<unknown>
}

export interface ClusterClient extends NodeRedisCluster {
  readonly masters: readonly { readonly address: string }[]
  readonly slots: readonly (
    | { readonly master: { readonly address: string; readonly client?: PlainClient } }
    | undefined
  )[]
  nodeClient(node: object): PlainClient | Promise<PlainClient>
}

export class NodeRedisClusterLink extends NodeRedisLink<ClusterClient> {
  readonly cluster = true
  private looking = false

  ready(): boolean {
    return this.client.isOpen && this.client.masters.length > 0
  }

  protected async send(key: string, command: string[]): Promise<unknown> {
    try {
      return await this.client.sendCommand(key, false, command)
    } catch (error) {
      if (!isReply(error)) this.lookAround(key)
      throw error
    }
  }

  /**
   * This client learns that slots have moved only from a server that says so. One that died says nothing, and the client
   * would go on asking it after the failover. So some server is asked for the key: any but the right one says where it is.
   */
  private lookAround(key: string): void {
    if (this.looking) return
    this.looking = true
    this.client
      .sendCommand(undefined, false, ['EXISTS', key])
      .catch(() => {})
      .finally(() => (this.looking = false))
      .catch(() => {})
  }

  nodeOf(key: string): string {
    return this.client.slots[slotOf(this.keyPrefix + key)]?.master.address ?? ''
  }

  reset(key: string): void {
    const client = this.client.slots[slotOf(this.keyPrefix + key)]?.master.client
    if (this.owned && client !== undefined) reconnect(client)
  }

  async primaries(): Promise<readonly Node[]> {
    const nodes = await Promise.all(
      this.client.masters.map(async (master) => {
        const node = await this.client.nodeClient(master)
        const send: Node['send'] = (args) => node.sendCommand(this.words(args))
        return { address: master.address, send }
      }),
    )
    return inOrder(nodes, firstSlots(Array.from(this.client.slots, (slot) => slot?.master.address)))
  }

  /** In a Cluster any node hears what is published at any other. */
  async subscriber(events: SubscriberEvents): Promise<SubscriberConnection> {
    const { masters } = this.client
    const node = masters[Math.floor(Math.random() * masters.length)]
    if (node === undefined) throw new Error('the Redis Cluster has no primary that could be listened to')
    return listenThrough(await this.client.nodeClient(node), events)
  }
}

/** Errors of servers begin with a word in capitals; those of the client are sentences. */
function isReply(error: unknown): boolean {
  return error instanceof Error && /^[A-Z]{2}[A-Z0-9]* /.test(error.message)
}
