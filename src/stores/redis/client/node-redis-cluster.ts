import { isReadOnly, isTryAgain } from '../failure.ts'
import type { Node, SubscriberConnection, SubscriberEvents } from './driver.ts'
import { listen } from './driver.ts'
import { FIRST_KEY, listenThrough, NodeRedisDriver } from './node-redis.ts'
import { end } from './node-redis-attempt.ts'
import { keepFromLostWrites } from './node-redis-lost-writes.ts'
import type { NodeRedisBase, PlainClient } from './node-redis.ts'
import type { ReplicaWish } from '../replicas.ts'
import { firstSlots, inOrder, isElsewhere, NO_CLAIM, REDIRECTIONS, slotOf, stillMoving } from '../slots.ts'

/** As `createCluster` makes it. */
export interface NodeRedisCluster extends NodeRedisBase {
  readonly masters: readonly object[]
  sendCommand(firstKey: string | undefined, isReadonly: boolean, args: string[]): Promise<unknown>
}

export interface ClusterClient extends NodeRedisCluster {
  readonly masters: readonly { readonly address: string; readonly client?: PlainClient }[]
  readonly replicas: readonly { readonly client?: PlainClient }[]
  readonly slots: readonly (
    | { readonly master: { readonly address: string; readonly client?: PlainClient } }
    | undefined
  )[]
  nodeClient(node: object): PlainClient | Promise<PlainClient>
}

export class NodeRedisClusterDriver extends NodeRedisDriver<ClusterClient> {
  readonly cluster = true
  private looking = false
  /** Of each node's client that has been seen: it goes with the node. */
  private readonly kept = new Map<object, () => void>()
  private readonly stopKeeping: () => void

  constructor(client: ClusterClient, owned: boolean) {
    super(client, owned)
    this.keepNodes()
    // Said of a connection that is new, before anything is sent on it.
    this.stopKeeping = listen(client, ['node-connect'], () => this.keepNodes())
  }

  ready(): boolean {
    return this.client.isOpen && this.client.masters.length > 0
  }

  private keepNodes(): void {
    // A replica may be promoted, and keeps its connection.
    const { masters, replicas } = this.client
    const clients = new Set<object | undefined>([...masters, ...replicas].map(({ client }) => client))
    for (const client of clients)
      if (client !== undefined && !this.kept.has(client)) this.kept.set(client, keepFromLostWrites(client))
    for (const [client, stop] of this.kept) {
      if (clients.has(client)) continue
      stop()
      this.kept.delete(client)
    }
  }

  override close(): Promise<void> {
    this.stopKeeping()
    for (const stop of this.kept.values()) stop()
    this.kept.clear()
    return super.close()
  }

  protected async send(key: string, command: string[]): Promise<unknown> {
    try {
      return await this.client.sendCommand(key, false, command)
    } catch (error) {
      if (isOfReplica(error)) {
        await this.learn(key)
        return this.client.sendCommand(key, false, command)
      }
      if (!isReply(error)) this.lookAround(key)
      // The driver has followed the slot for as often as it does, and says where it was sent last.
      throw isElsewhere(error) && !isTryAgain(error) ? stillMoving() : error
    }
  }

  /** A command that writes goes by where the slot is now, and the client with it. A script may not: see `isOfReplica`. */
  private async learn(key: string): Promise<void> {
    await this.client.sendCommand(key, false, ['HDEL', key, NO_CLAIM]).catch(() => {})
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

  override thenWait(
    command: 'evalsha' | 'eval',
    args: string[],
    { count, ms }: ReplicaWish,
  ): [Promise<unknown>, Promise<unknown>] {
    const results = this.together(this.scriptWords(command, args), ['WAIT', String(count), String(ms)])
    return [results.then(([script]) => script), results.then(([, wait]) => wait)]
  }

  /**
   * The client would follow each command by itself: a script to where its slot is now, and not WAIT, which the old node answers,
   * for its own replicas. So both go to one node, and a command that writes teaches the client when that is another one.
   */
  private async together(script: string[], wait: string[]): Promise<[Promise<unknown>, Promise<unknown>]> {
    const key = script[FIRST_KEY] ?? ''
    for (let looked = 0; ; looked++) {
      const master = this.client.slots[slotOf(key)]?.master
      if (master === undefined) throw new Error('CLUSTERDOWN no server has the slot')
      const node = await this.client.nodeClient(master)
      const sent: [Promise<unknown>, Promise<unknown>] = [node.sendCommand(script), node.sendCommand(wait)]
      const [ran] = await Promise.allSettled(sent)
      if (ran.status === 'fulfilled') return sent
      if (!isElsewhere(ran.reason) && !isOfReplica(ran.reason)) {
        if (!isReply(ran.reason)) this.lookAround(key)
        return sent
      }
      if (looked === REDIRECTIONS) throw stillMoving()
      await this.learn(key)
    }
  }

  nodeOf(key: string): string {
    return this.client.slots[slotOf(this.keyPrefix + key)]?.master.address ?? ''
  }

  reset(key: string): void {
    const client = this.client.slots[slotOf(this.keyPrefix + key)]?.master.client
    // One that connects is left to it: told to end and to connect again, it would do both, and mix up what is said on the two.
    if (!this.owned || client?.isReady !== true) return
    end(client)
    client.connect().catch(() => {})
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

/**
 * A replica sends a script on to its primary, but not on a connection that was made to read from it (`useReplicas`): there the
 * script fails with its first write, and the client does not learn where the slot is. Such a connection stays when the replica
 * is promoted, and when it is a replica again. Nothing was done.
 */
function isOfReplica(error: unknown): boolean {
  return isReadOnly(error) || (error instanceof Error && error.message.includes('access a non local key'))
}

/** Errors of servers begin with a word in capitals; those of the client are sentences. */
function isReply(error: unknown): boolean {
  return error instanceof Error && /^[A-Z]{2}[A-Z0-9]* /.test(error.message)
}
