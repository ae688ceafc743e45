import { plainError } from '../failure.ts'
import { listen, SUBSCRIBER_MS } from './driver.ts'
import type { Driver, Node, SubscriberConnection, SubscriberEvents } from './driver.ts'
import { connectWithin, end } from './node-redis-attempt.ts'
import { keepFromLostWrites } from './node-redis-lost-writes.ts'
import type { ReplicaWish } from '../replicas.ts'

/** What all clients of node-redis have. */
export interface NodeRedisBase {
  readonly isOpen: boolean
  on(event: string, listener: (...args: unknown[]) => void): unknown
  off(event: string, listener: (...args: unknown[]) => void): unknown
  /** `redis` 4 has only the other one. */
  destroy?(): void
  disconnect?(): Promise<void>
}

/** The parts of a node-redis client (`redis` 4, 5 or 6) that the store uses, as `createClient` makes it. */
export interface NodeRedisClient extends NodeRedisBase {
  readonly isReady: boolean
  sendCommand(args: string[]): Promise<unknown>
}

export interface Subscribing {
  subscribe(
    channel: string | readonly string[],
    listener: (message: string, channel: string) => void,
  ): Promise<void>
  unsubscribe(channel: string | readonly string[], listener?: unknown): Promise<void>
}

/** Leads to one server at a time. */
export interface LeadingClient extends NodeRedisClient {
  readonly options?: { readonly socket?: object }
  duplicate(options: object): PlainClient
  connect(): Promise<unknown>
  readonly asksSentinels?: boolean
  /** Ends the connection and makes a new one. Those of the store's own have it; see primary-client.ts. */
  reconnect?(): void
}

export interface PlainClient extends LeadingClient, Subscribing {
  unref?(): void
}

/** Commands to one server whose first argument is a key. */
const KEYED = new Set(['exists', 'set', 'incrby'])

/** Of the words of a script. */
export const FIRST_KEY = 3

/**
 * Not `node-ready`: a Cluster's connections are made one after the other, while others are in use, and one that is made anew was
 * lost before.
 */
const CHANGES = [
  'reconnecting',
  'ready',
  'node-error',
  'node-reconnecting',
  'client-error',
  'topology-change',
]

/** What a client for one server, for a Cluster and for a Sentinel group have in common. */
export abstract class NodeRedisDriver<C extends NodeRedisBase> implements Driver {
  abstract readonly cluster: boolean
  readonly keyPrefix: string
  protected readonly client: C
  protected readonly owned: boolean
  private trouble: Error | undefined
  private wasOpen: boolean

  constructor(client: C, owned: boolean) {
    this.client = client
    this.owned = owned
    this.keyPrefix = keyPrefixOf(client)
    this.wasOpen = client.isOpen
    // Nothing is listened to on a client of the user's: an error that nobody listens to is the user's to hear of.
    if (!owned) return
    client.on('error', (error) => (this.trouble = plainError(error)))
    client.on('ready', () => (this.trouble = undefined))
  }

  abstract ready(): boolean
  protected abstract send(key: string, command: string[]): Promise<unknown>
  abstract nodeOf(key: string): string
  abstract reset(key: string): void
  abstract primaries(): Promise<readonly Node[]>
  abstract subscriber(events: SubscriberEvents): Promise<SubscriberConnection>

  onReady(listener: () => void): () => void {
    const events = ['ready', 'connect', 'end', 'disconnect', 'node-ready', 'topology-change']
    return listen(this.client, this.owned ? [...events, 'error'] : events, listener)
  }

  ended(): boolean {
    // One that was never open may still be connected.
    this.wasOpen ||= this.client.isOpen
    return this.wasOpen && !this.client.isOpen
  }

  unopened(): boolean {
    return !this.owned && !this.client.isOpen
  }

  notReadyBecause(): Error | undefined {
    if (this.trouble !== undefined || this.client.isOpen) return this.trouble
    return new Error('the Redis client is not connected: await client.connect() before using it')
  }

  evalsha(args: string[]): Promise<unknown> {
    return this.script('EVALSHA', args)
  }

  /** Both are queued in one go, and so leave one behind the other on one connection. */
  thenWait(
    command: 'evalsha' | 'eval',
    args: string[],
    { count, ms }: ReplicaWish,
  ): [Promise<unknown>, Promise<unknown>] {
    return [this[command](args), this.send('', ['WAIT', String(count), String(ms)])]
  }

  onConnectionChange(listener: () => void): () => void {
    return listen(this.client, this.owned ? [...CHANGES, 'error'] : CHANGES, listener)
  }

  eval(args: string[]): Promise<unknown> {
    return this.script('EVAL', args)
  }

  hdel(name: string, field: string): Promise<unknown> {
    const key = this.keyPrefix + name
    return this.send(key, ['HDEL', key, field])
  }

  /** The driver puts its prefix before the keys of commands that it knows, and not of those that it is given in words. */
  protected scriptWords(command: string, args: readonly string[]): string[] {
    if (this.keyPrefix === '') return [command, ...args]
    const [text = '', count = '0', ...rest] = args
    const prefixed = rest.map((arg, at) => (at < Number(count) ? this.keyPrefix + arg : arg))
    return [command, text, count, ...prefixed]
  }

  private script(command: string, args: readonly string[]): Promise<unknown> {
    const words = this.scriptWords(command, args)
    return this.send(words[FIRST_KEY] ?? '', words)
  }

  /** The same for what one server is asked. */
  protected words([command = '', ...args]: readonly string[]): string[] {
    const [key, ...rest] = args
    return key === undefined || !KEYED.has(command)
      ? [command, ...args]
      : [command, this.keyPrefix + key, ...rest]
  }

  close(): Promise<void> {
    if (this.owned) end(this.client)
    return Promise.resolve()
  }
}

export class NodeRedisPlainDriver extends NodeRedisDriver<LeadingClient> {
  readonly cluster = false
  private readonly stopKeeping: () => void

  constructor(client: LeadingClient, owned: boolean) {
    super(client, owned)
    this.stopKeeping = keepFromLostWrites(client)
  }

  get sentinels(): boolean {
    return this.client.asksSentinels === true
  }

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
    if (this.owned) this.client.reconnect?.()
  }

  primaries(): Promise<readonly Node[]> {
    return Promise.resolve([{ send: (args) => this.client.sendCommand(this.words(args)) }])
  }

  subscriber(events: SubscriberEvents): Promise<SubscriberConnection> {
    return listenThrough(this.client, events)
  }

  override close(): Promise<void> {
    this.stopKeeping()
    return super.close()
  }
}

/** `redis` 6 has one, and says so under this name. Earlier ones take the option, and do nothing with it. */
function keyPrefixOf(client: object): string {
  const { _keyPrefix: prefix } = client as { _keyPrefix?: unknown }
  return typeof prefix === 'string' || Buffer.isBuffer(prefix) ? String(prefix) : ''
}

/** A duplicate that does not reconnect: the store connects anew by itself, and so knows what may have been missed. */
export async function listenThrough(
  original: LeadingClient,
  { message, end: ended }: SubscriberEvents,
): Promise<SubscriberConnection> {
  const connection = original.duplicate({
    socket: { ...original.options?.socket, reconnectStrategy: false },
    disableOfflineQueue: true,
  })
  let over = false
  const finish = (): void => {
    if (over) return
    over = true
    end(connection)
    ended()
  }
  let connected = false
  connection.on('error', () => connected && finish())
  connection.on('end', () => connected && finish())
  await connectWithin(connection, SUBSCRIBER_MS, () => Promise.resolve())
  connected = true
  // Who waits keeps the process alive; to be told something is no reason to.
  connection.unref?.()
  const heard = (text: string, channel: string): void => message(channel, text)
  return {
    subscribe: (channels) => connection.subscribe(channels, heard),
    unsubscribe: (channel) => connection.unsubscribe(channel, heard),
    close() {
      over = true
      end(connection)
    },
  }
}
