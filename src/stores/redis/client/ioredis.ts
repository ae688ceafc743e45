import { isTryAgain, plainError } from '../failure.ts'
import { followSentinels } from './ioredis-sentinels.ts'
import { listen, SUBSCRIBER_MS } from './driver.ts'
import type { Driver, Node, SubscriberConnection, SubscriberEvents } from './driver.ts'
import type { ReplicaWish } from '../replicas.ts'
import { SENTINEL_MS } from './sentinels.ts'
import { firstSlots, inOrder, isElsewhere, NO_CLAIM, REDIRECTIONS, slotOf, stillMoving } from '../slots.ts'

const { setTimeout, clearTimeout } = globalThis

/** The parts of an `ioredis` client (5 or 6) that the store uses; `new Redis(…)` and `new Redis.Cluster(…)` have them. */
export interface IoredisClient {
  readonly status: string
  readonly isCluster: boolean
  readonly options: {
    readonly keyPrefix?: string | undefined
    readonly sentinels?: unknown
    readonly enableAutoPipelining?: boolean | undefined
  }
  connect(): Promise<unknown>
  disconnect(reconnect?: boolean): void
  evalsha(sha1: string, numkeys: string, ...args: string[]): Promise<unknown>
  eval(script: string, numkeys: string, ...args: string[]): Promise<unknown>
  hdel(key: string, field: string): Promise<unknown>
  call(command: string, ...args: string[]): Promise<unknown>
  on(event: string, listener: (...args: unknown[]) => void): unknown
  off(event: string, listener: (...args: unknown[]) => void): unknown
}

/** One server's connection: what `duplicate` of a standalone client makes, and what a cluster consists of. */
export interface IoredisNode extends IoredisClient {
  readonly options: {
    readonly keyPrefix?: string | undefined
    readonly host?: string
    readonly port?: number
  }
  readonly stream?: {
    readonly writable?: boolean
    readonly remoteAddress?: string
    readonly remotePort?: number
    unref?(): unknown
  }
  duplicate(options: object): IoredisNode
  subscribe(...channels: string[]): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
}

interface IoredisCluster extends IoredisClient {
  nodes(role: 'master' | 'all'): IoredisNode[]
  /** By slot: the address of the primary, then those of its replicas. */
  readonly slots: readonly (readonly string[] | undefined)[]
  pipeline(commands: string[][]): { exec(): Promise<[error: Error | null, reply?: unknown][] | null> }
}

/** What a subscriber does differently from the client that it is a copy of. */
const SUBSCRIBER_OPTIONS = {
  // The store connects anew by itself: only so does it know what may have been missed.
  retryStrategy: () => null,
  sentinelRetryStrategy: () => null,
  sentinelCommandTimeout: SENTINEL_MS,
  reconnectOnError: null,
  failoverDetector: false,
  autoResubscribe: false,
  enableOfflineQueue: false,
  maxRetriesPerRequest: null,
  lazyConnect: true,
  readOnly: false,
  keyPrefix: '',
  enableAutoPipelining: false,
}

export function isIoredis(client: object): client is IoredisClient {
  return (
    'status' in client && typeof client.status === 'string' && 'evalsha' in client && 'isCluster' in client
  )
}

/** `owned`: the store made the client and ends it. */
export class IoredisDriver implements Driver {
  readonly cluster: boolean
  readonly sentinels: boolean
  readonly keyPrefix: string
  private readonly client: IoredisClient
  private readonly owned: boolean
  private trouble: Error | undefined
  /** The connection is being dropped. The driver calls it ready until it is closed. */
  private dropping = false
  private readonly dropped = new WeakSet<object>()

  constructor(client: IoredisClient, owned: boolean) {
    this.client = client
    this.owned = owned
    this.cluster = client.isCluster
    this.sentinels = (client.options.sentinels ?? null) !== null
    this.keyPrefix = client.options.keyPrefix ?? ''
    // Nothing is listened to on a client of the user's: an error that nobody listens to is the user's to hear of.
    if (!owned) return
    client.on('error', (error) => (this.trouble = plainError(error)))
    client.on('ready', () => (this.trouble = undefined))
    client.on('close', () => (this.dropping = false))
    followSentinels(client as IoredisNode, () => this.drop())
  }

  ready(): boolean {
    // The driver calls a connection that the server has ended ready until it is closed, and gives back what it is told to send.
    const { status, stream } = this.client as IoredisNode
    return status === 'ready' && stream?.writable !== false && !this.dropping
  }

  onReady(listener: () => void): () => void {
    // A lazy client connects with its first command, which it will not be given before it is connected.
    if (this.client.status === 'wait') this.client.connect().catch(() => {})
    return listen(this.client, this.owned ? ['ready', 'end', 'error'] : ['ready', 'end'], listener)
  }

  onConnectionChange(listener: () => void): () => void {
    // A cluster speaks of its nodes one by one.
    return listen(this.client, ['close', 'ready', '-node', '+node'], listener)
  }

  ended(): boolean {
    return this.client.status === 'end'
  }

  notReadyBecause(): Error | undefined {
    return this.ended() ? new Error('the Redis client has been closed') : this.trouble
  }

  evalsha(args: string[]): Promise<unknown> {
    return this.followed(this.client.evalsha(...(args as [string, string])))
  }

  thenWait(
    command: 'evalsha' | 'eval',
    args: string[],
    { count, ms }: ReplicaWish,
  ): [Promise<unknown>, Promise<unknown>] {
    const wait = [String(count), String(ms)]
    const { enableAutoPipelining = false } = this.client.options
    if (!this.cluster && !enableAutoPipelining)
      return [this[command](args), this.client.call('wait', ...wait)]
    const both = [
      [command, ...args],
      ['wait', ...wait],
    ]
    // The driver sends at once what it is told to keep out of its own pipelines (`autoPipeliningIgnoredCommands`): WAIT before the script.
    const results = this.cluster ? this.together(both) : (this.client as IoredisCluster).pipeline(both).exec()
    const result = async (at: 0 | 1): Promise<unknown> => {
      const [error, reply] = (await results)?.[at] ?? [new Error('the pipeline had no result')]
      if (error !== null) throw error
      return reply
    }
    return [result(0), result(1)]
  }

  /**
   * A pipeline goes to the node of its first key as a whole. If that is another one now, the driver neither follows nor learns
   * it from the script alone, because the other command did not fail. A plain command teaches it; one that writes, for others may
   * go to replicas.
   */
  private async together([script = [], wait = []]: string[][]): Promise<[Error | null, unknown?][] | null> {
    const cluster = this.client as IoredisCluster
    for (let looked = 0; ; looked++) {
      const results = await cluster.pipeline([script, wait]).exec()
      if (!isElsewhere(results?.[0]?.[0])) return results
      if (looked === REDIRECTIONS) throw stillMoving()
      await this.client.hdel(script[3] ?? '', NO_CLAIM).catch(() => {})
    }
  }

  eval(args: string[]): Promise<unknown> {
    return this.followed(this.client.eval(...(args as [string, string])))
  }

  hdel(key: string, field: string): Promise<unknown> {
    return this.followed(this.client.hdel(key, field))
  }

  /** Commands that `enableAutoPipelining` sent together, and that were sent on to different places, the driver does not follow. */
  private followed(reply: Promise<unknown>): Promise<unknown> {
    if (!this.cluster) return reply
    return reply.catch((error: unknown) => {
      throw isElsewhere(error) && !isTryAgain(error) ? stillMoving() : error
    })
  }

  nodeOf(key: string): string {
    if (!this.cluster) return ''
    return (this.client as IoredisCluster).slots[slotOf(this.keyPrefix + key)]?.[0] ?? ''
  }

  reset(key: string): void {
    if (!this.owned) return
    if (!this.cluster) return this.drop()
    const address = this.nodeOf(key)
    for (const node of (this.client as IoredisCluster).nodes('all')) {
      if (`${node.options.host}:${node.options.port}` !== address || this.dropped.has(node)) continue
      this.dropped.add(node)
      node.disconnect()
    }
  }

  /**
   * Only once: each time leaves a listener on the socket. And only what there is to drop: a client that is told so while
   * it asks Sentinels where the primary is gives up for good.
   */
  private drop(): void {
    const { status } = this.client
    const open = status === 'ready' || status === 'connect'
    if (this.dropping || !(open || (status === 'connecting' && !this.sentinels))) return
    this.dropping = true
    this.client.disconnect(true)
  }

  primaries(): Promise<readonly Node[]> {
    const asked = (node: IoredisClient): Node => ({
      send: ([command = '', ...args]) => node.call(command, ...args),
    })
    if (!this.cluster) return Promise.resolve([asked(this.client)])
    const { slots } = this.client as IoredisCluster
    const nodes = (this.client as IoredisCluster)
      .nodes('master')
      .map((node) => ({ ...asked(node), address: `${node.options.host}:${node.options.port}` }))
    return Promise.resolve(inOrder(nodes, firstSlots(Array.from(slots, (places) => places?.[0]))))
  }

  /** The driver forgets a node that it cannot reach, though not which slots that has. */
  missing(): string | undefined {
    if (!this.cluster) return undefined
    const { slots } = this.client as IoredisCluster
    const nodes = (this.client as IoredisCluster).nodes('master')
    const known = new Set(nodes.map(({ options }) => `${options.host}:${options.port}`))
    const owners = firstSlots(Array.from(slots, (places) => places?.[0]))
    return [...owners.keys()].find((address) => !known.has(address))
  }

  async subscriber({ message, end }: SubscriberEvents): Promise<SubscriberConnection> {
    const connection = this.nodeToListenAt().duplicate(SUBSCRIBER_OPTIONS)
    connection.on('error', () => {})
    connection.on('message', (channel, text) => message(String(channel), String(text)))
    const timer = setTimeout(() => connection.disconnect(), SUBSCRIBER_MS)
    await connection.connect().finally(() => clearTimeout(timer))
    connection.on('end', end)
    if (connection.status === 'end') end()
    // Who waits keeps the process alive; to be told something is no reason to.
    connection.stream?.unref?.()
    return {
      async subscribe(channels) {
        await connection.subscribe(...channels)
      },
      async unsubscribe(channel) {
        await connection.unsubscribe(channel)
      },
      close: () => connection.disconnect(),
    }
  }

  /** In a Cluster any node hears what is published at any other. */
  private nodeToListenAt(): IoredisNode {
    if (!this.cluster) return this.client as IoredisNode
    const ready = (this.client as IoredisCluster).nodes('master').filter(({ status }) => status !== 'end')
    const node = ready[Math.floor(Math.random() * ready.length)]
    if (node === undefined) throw new Error('the Redis Cluster has no primary that could be listened to')
    return node
  }

  close(): Promise<void> {
    if (this.owned) this.client.disconnect()
    return Promise.resolve()
  }
}
