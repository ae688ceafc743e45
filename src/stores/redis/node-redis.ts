import type { Link, Node, SubscriberConnection, SubscriberEvents } from './link.ts'
import type { ReplicaWish } from './replicas.ts'
import { slotOf } from './slots.ts'

/** The parts of a node-redis client (`redis` 5 or 6) that the store uses, as `createClient` makes it. */
export interface NodeRedisClient {
  readonly isOpen: boolean
  readonly isReady: boolean
  sendCommand(args: string[]): Promise<unknown>
  on(event: string, listener: (...args: unknown[]) => void): unknown
  off(event: string, listener: (...args: unknown[]) => void): unknown
  destroy(): void
}

/** As `createCluster` makes it. */
export interface NodeRedisCluster {
  readonly isOpen: boolean
  readonly masters: readonly object[]
  sendCommand(firstKey: string, isReadonly: boolean, args: string[]): Promise<unknown>
  on(event: string, listener: (...args: unknown[]) => void): unknown
  off(event: string, listener: (...args: unknown[]) => void): unknown
  destroy(): void
}

/** As `createSentinel` makes it. */
export interface NodeRedisSentinel {
  readonly isOpen: boolean
  readonly isReady: boolean
  getMasterNode(): unknown
  sendCommand(isReadonly: boolean, args: string[]): Promise<unknown>
  on(event: string, listener: (...args: unknown[]) => void): unknown
  off(event: string, listener: (...args: unknown[]) => void): unknown
  destroy(): void
}

export type AnyNodeRedis = NodeRedisClient | NodeRedisCluster | NodeRedisSentinel

/** What the three have in common for subscribing; only the plain client is ever duplicated. */
interface Subscribing {
  subscribe(
    channel: string | readonly string[],
    listener: (message: string, channel: string) => void,
  ): Promise<void>
  unsubscribe(channel: string | readonly string[], listener?: unknown): Promise<void>
}

interface PlainClient extends NodeRedisClient, Subscribing {
  readonly options?: { readonly socket?: object }
  duplicate(options: object): PlainClient
  connect(): Promise<unknown>
}

interface ClusterClient extends NodeRedisCluster {
  readonly slots: readonly { readonly master: { readonly address: string; readonly client?: PlainClient } }[]
  nodeClient(node: object): PlainClient | Promise<PlainClient>
}

interface SentinelClient extends NodeRedisSentinel, Subscribing {
  connect(): Promise<unknown>
}

const LOOK_AGAIN_MS = 20

export function isNodeRedis(client: object): client is AnyNodeRedis {
  return 'sendCommand' in client && 'isOpen' in client
}

export function nodeRedisLink(client: AnyNodeRedis, owned: boolean): Link {
  if ('masters' in client) return new ClusterLink(client as ClusterClient, owned)
  if ('getMasterNode' in client) return new SentinelLink(client as SentinelClient, owned)
  return new PlainLink(client as PlainClient, owned)
}

abstract class NodeRedisLink<C extends AnyNodeRedis> implements Link {
  abstract readonly cluster: boolean
  readonly keyPrefix = ''
  protected readonly client: C
  protected readonly owned: boolean

  constructor(client: C, owned: boolean) {
    this.client = client
    this.owned = owned
  }

  abstract ready(): boolean
  protected abstract send(key: string, command: string[]): Promise<unknown>
  abstract nodeOf(key: string): string
  abstract reset(key: string): void
  abstract primaries(): Promise<readonly Node[]>
  abstract subscriber(events: SubscriberEvents): Promise<SubscriberConnection>

  onReady(listener: () => void): () => void {
    const events = ['ready', 'connect', 'node-ready', 'topology-change']
    for (const event of events) this.client.on(event, listener)
    return () => events.forEach((event) => this.client.off(event, listener))
  }

  notReadyBecause(): string | undefined {
    return this.client.isOpen
      ? undefined
      : 'the Redis client is not connected: await client.connect() before using it'
  }

  evalsha(args: string[]): Promise<unknown> {
    return this.send(args[2] ?? '', ['EVALSHA', ...args])
  }

  /** Both are queued in one go, and so leave one behind the other on one connection. */
  thenWait(
    command: 'evalsha' | 'eval',
    args: string[],
    { count, ms }: ReplicaWish,
  ): [Promise<unknown>, Promise<unknown>] {
    return [this[command](args), this.send(args[2] ?? '', ['WAIT', String(count), String(ms)])]
  }

  onDisconnect(listener: () => void): void {
    for (const event of ['error', 'reconnecting', 'node-error', 'node-reconnecting', 'topology-change']) {
      this.client.on(event, listener)
    }
  }

  eval(args: string[]): Promise<unknown> {
    return this.send(args[2] ?? '', ['EVAL', ...args])
  }

  close(): Promise<void> {
    if (this.owned && this.client.isOpen) this.client.destroy()
    return Promise.resolve()
  }
}

class PlainLink extends NodeRedisLink<PlainClient> {
  readonly cluster = false

  ready(): boolean {
    return this.client.isReady
  }

  protected send(_key: string, command: string[]): Promise<unknown> {
    return this.client.sendCommand(command)
  }

  nodeOf(): string {
    return ''
  }

  reset(): void {
    if (this.owned) reconnect(this.client)
  }

  primaries(): Promise<readonly Node[]> {
    return Promise.resolve([{ send: (args) => this.client.sendCommand([...args]) }])
  }

  subscriber(events: SubscriberEvents): Promise<SubscriberConnection> {
    return listenThrough(this.client, events)
  }
}

class ClusterLink extends NodeRedisLink<ClusterClient> {
  readonly cluster = true

  ready(): boolean {
    return this.client.isOpen && this.client.masters.length > 0
  }

  protected send(key: string, command: string[]): Promise<unknown> {
    return this.client.sendCommand(key, false, command)
  }

  nodeOf(key: string): string {
    return this.client.slots[slotOf(key)]?.master.address ?? ''
  }

  reset(key: string): void {
    const client = this.client.slots[slotOf(key)]?.master.client
    if (this.owned && client !== undefined) reconnect(client)
  }

  async primaries(): Promise<readonly Node[]> {
    const nodes = await Promise.all(this.client.masters.map(async (master) => this.client.nodeClient(master)))
    return nodes.map((node) => ({ send: (args) => node.sendCommand([...args]) }))
  }

  /** In a Cluster any node hears what is published at any other. */
  async subscriber(events: SubscriberEvents): Promise<SubscriberConnection> {
    const { masters } = this.client
    const node = masters[Math.floor(Math.random() * masters.length)]
    if (node === undefined) throw new Error('the Redis Cluster has no primary that could be listened to')
    return listenThrough(await this.client.nodeClient(node), events)
  }
}

/** Ends the connection and makes a new one. */
function reconnect(client: { readonly isOpen: boolean; destroy(): void; connect(): Promise<unknown> }): void {
  if (client.isOpen) client.destroy()
  client.connect().catch(() => {})
}

/** A duplicate that does not reconnect: the store connects anew by itself, and so knows what may have been missed. */
async function listenThrough(
  original: PlainClient,
  { message, end }: SubscriberEvents,
): Promise<SubscriberConnection> {
  const connection = original.duplicate({
    socket: { ...original.options?.socket, reconnectStrategy: false },
    disableOfflineQueue: true,
  })
  let ended = false
  const over = (): void => {
    if (ended) return
    ended = true
    if (connection.isOpen) connection.destroy()
    end()
  }
  let connected = false
  connection.on('error', () => connected && over())
  connection.on('end', () => connected && over())
  await connection.connect()
  connected = true
  const heard = (text: string, channel: string): void => message(channel, text)
  return {
    subscribe: (channels) => connection.subscribe(channels, heard),
    unsubscribe: (channel) => connection.unsubscribe(channel, heard),
    async ping() {
      await connection.sendCommand(['PING'])
    },
    close() {
      ended = true
      if (connection.isOpen) connection.destroy()
    },
  }
}

class SentinelLink extends NodeRedisLink<SentinelClient> {
  readonly cluster = false

  ready(): boolean {
    return this.client.isReady
  }

  protected send(_key: string, command: string[]): Promise<unknown> {
    return this.client.sendCommand(false, command)
  }

  /** This client does not say when it has connected. */
  override onReady(listener: () => void): () => void {
    const timer = setInterval(listener, LOOK_AGAIN_MS)
    return () => clearInterval(timer)
  }

  nodeOf(): string {
    return ''
  }

  reset(): void {
    if (this.owned) reconnect(this.client)
  }

  primaries(): Promise<readonly Node[]> {
    return Promise.resolve([{ send: (args) => this.client.sendCommand(false, [...args]) }])
  }

  /**
   * This client has a connection for subscriptions of its own and moves it to a new primary by itself, but does not
   * say when. So whatever it reports is taken for the end of the connection: subscribing again costs little.
   */
  subscriber({ message, end }: SubscriberEvents): Promise<SubscriberConnection> {
    const { client } = this
    const heard = (text: string, channel: string): void => message(channel, text)
    const channels = new Set<string>()
    const events = ['topology-change', 'error']
    const stop = (): void => {
      for (const event of events) client.off(event, over)
      for (const channel of channels) client.unsubscribe(channel, heard).catch(() => {})
    }
    const over = (): void => {
      stop()
      end()
    }
    for (const event of events) client.on(event, over)
    return Promise.resolve({
      async subscribe(more) {
        for (const channel of more) channels.add(channel)
        await client.subscribe(more, heard)
      },
      async unsubscribe(channel) {
        channels.delete(channel)
        await client.unsubscribe(channel, heard)
      },
      ping: () => Promise.resolve(),
      close: stop,
    })
  }
}
