import type { ReplicaWish } from '../replicas.ts'

/** What the store needs of a driver. One implementation for each driver; the rest of the store knows none of them. */
export interface Driver {
  /** Whether the keys are spread over a Redis Cluster. */
  readonly cluster: boolean
  /** Whether it leads to whichever server Sentinels call the primary. */
  readonly sentinels?: boolean
  /** Nothing can be heard through it, so whoever waits asks; nor can a script be followed by WAIT. */
  readonly polled?: boolean
  /** Each request may go another way, to another server: what one says of itself says nothing about the next. */
  readonly connectionless?: boolean
  /** What the driver puts before every key by itself. Channels and SCAN patterns it leaves alone. */
  readonly keyPrefix: string
  /** A command sent now leaves now. Otherwise the driver would keep it, for who knows how long. */
  ready(): boolean
  /** Calls back whenever the driver has become ready, or has failed to. Returns the function that ends it. */
  onReady(listener: () => void): () => void
  /** Its owner has ended it: it will not connect again by itself. */
  ended(): boolean
  /** Nobody has told it to connect, and it does not do so by itself. */
  unopened?(): boolean
  /** Why it is not ready, if there is more to say than that. */
  notReadyBecause(): Error | undefined
  /** Runs a script at the primary of its first key. `args`: hash or text, number of keys, keys, arguments. */
  evalsha(args: string[]): Promise<unknown>
  eval(args: string[]): Promise<unknown>
  hdel(key: string, field: string): Promise<unknown>
  /** One of these, and WAIT behind it on the same connection. */
  thenWait(
    command: 'evalsha' | 'eval',
    args: string[],
    replicas: ReplicaWish,
  ): [script: Promise<unknown>, wait: Promise<unknown>]
  /** Calls back whenever a connection was lost or made, which may lead to another server. Returns the function that ends it. */
  onConnectionChange(listener: () => void): () => void
  /** Which server a key is at now, in words that only have to differ. */
  nodeOf(key: string): string
  /** Drops the connection to the server of a key, if it is the store's own; the driver makes a new one. */
  reset(key: string): void
  /** Every primary, to be asked on its own. Those of a Cluster in the order of their slots. */
  primaries(): Promise<readonly Node[]>
  /** Of a Cluster: where a primary is that has slots and is not among those, because there is no connection to it. */
  missing?(): string | undefined
  /** A new connection for one subscriber; it does not reconnect. Rejects if it cannot be made, in its time. */
  subscriber(events: SubscriberEvents): Promise<SubscriberConnection>
  /** Ends the connections that belong to the store. A client of the user's is left alone. */
  close(): Promise<void>
}

/** One server. Command names in small letters: one driver knows only those, and where their keys are. */
export interface Node {
  /** Of a Cluster: the first slot that it has, and where it is. */
  readonly slot?: number
  readonly address?: string
  send(args: readonly string[]): Promise<unknown>
}

/** A connection for a subscriber that takes longer to make is given up: a server may take it and say nothing. */
export const SUBSCRIBER_MS = 5_000

export interface SubscriberEvents {
  readonly message: (channel: string, message: string) => void
  /** The connection is gone. Said once. */
  readonly end: () => void
}

export interface SubscriberConnection {
  subscribe(channels: readonly string[]): Promise<void>
  unsubscribe(channel: string): Promise<void>
  close(): void
}

interface Emitter {
  on(event: string, listener: () => void): unknown
  off(event: string, listener: () => void): unknown
}

interface Hub {
  readonly listeners: Set<() => void>
  readonly tell: () => void
}

/** Of each client and event. */
const hubs = new WeakMap<Emitter, Map<string, Hub>>()

/**
 * Listens to several events. Returns the function that ends it. All stores on a client share one listener an event: more
 * than ten of them would be taken for a leak, and the client's owner warned.
 */
export function listen(emitter: Emitter, events: readonly string[], listener: () => void): () => void {
  const ends = events.map((event) => listenTo(emitter, event, listener))
  return () => ends.forEach((end) => end())
}

function listenTo(emitter: Emitter, event: string, listener: () => void): () => void {
  const ofEmitter = hubs.get(emitter) ?? new Map<string, Hub>()
  hubs.set(emitter, ofEmitter)
  const hub = ofEmitter.get(event) ?? newHub()
  if (!ofEmitter.has(event)) {
    ofEmitter.set(event, hub)
    emitter.on(event, hub.tell)
  }
  // Each registration is one of its own, also of the same function.
  const own = (): void => listener()
  hub.listeners.add(own)
  return () => {
    if (!hub.listeners.delete(own) || hub.listeners.size > 0) return
    ofEmitter.delete(event)
    emitter.off(event, hub.tell)
  }
}

function newHub(): Hub {
  const listeners = new Set<() => void>()
  return {
    listeners,
    tell: () => {
      // A copy: whoever is called may come and go.
      for (const listener of Array.from(listeners)) listener()
    },
  }
}
