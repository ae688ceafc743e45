import { createRequire } from 'node:module'

import type { RedisClient } from 'holdfast/redis'

const require = createRequire(import.meta.url)

/** Where the servers are: one, and a Cluster. */
export interface Place {
  readonly port: number
  readonly socket: string
  readonly tlsPort: number
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
}

export interface Combination {
  /** A package and how its client was set up. */
  readonly label: string
  readonly cluster: boolean
  /** Where its keys are: what the driver puts before them, and the database. */
  readonly keyPrefix: string
  readonly db: number
  readonly connect: (place: Place) => Promise<{ readonly client: RedisClient; readonly end: () => unknown }>
}

const TLS = { rejectUnauthorized: false }

/** Whatever people set that could change what a command does, what its reply looks like, or when it leaves. */
const IOREDIS_OPTIONS: Readonly<Record<string, object>> = {
  'nothing set': {},
  keyPrefix: { keyPrefix: 'app:' },
  lazyConnect: { lazyConnect: true },
  'enableOfflineQueue false': { enableOfflineQueue: false },
  'maxRetriesPerRequest null': { maxRetriesPerRequest: null },
  enableAutoPipelining: { enableAutoPipelining: true },
  stringNumbers: { stringNumbers: true },
  showFriendlyErrorStack: { showFriendlyErrorStack: true },
  commandTimeout: { commandTimeout: 5_000 },
  'enableReadyCheck false': { enableReadyCheck: false },
  'autoResubscribe false': { autoResubscribe: false },
  reconnectOnError: { reconnectOnError: ({ message }: Error) => message.includes('READONLY') },
  'all that BullMQ asks for': { maxRetriesPerRequest: null, enableReadyCheck: false, keyPrefix: 'app:' },
  RESP2: { protocol: 2 },
  RESP3: { protocol: 3, replyMapping: 'resp3' },
  'a database': { db: 3 },
  'a unix socket': { path: '' },
  TLS: { tls: TLS },
}

const IOREDIS_CLUSTER_OPTIONS: Readonly<Record<string, object>> = {
  'nothing set': {},
  'scaleReads slave': { scaleReads: 'slave' },
  'scaleReads all': { scaleReads: 'all' },
  enableAutoPipelining: { enableAutoPipelining: true },
  'enableOfflineQueue false': { enableOfflineQueue: false },
  keyPrefix: { keyPrefix: 'app:' },
  'keyPrefix with a hash tag': { keyPrefix: '{app}:' },
  stringNumbers: { redisOptions: { stringNumbers: true } },
  readOnly: { redisOptions: { readOnly: true } },
}

const NODE_REDIS_OPTIONS: Readonly<Record<string, object>> = {
  'nothing set': {},
  keyPrefix: { keyPrefix: 'app:' },
  RESP2: { RESP: 2 },
  RESP3: { RESP: 3 },
  'numbers as strings': { mapped: 'numbers' },
  'numbers as strings, RESP3': { RESP: 3, mapped: 'numbers' },
  'strings as Buffers': { mapped: 'strings' },
  'strings as Buffers, RESP3': { RESP: 3, mapped: 'strings' },
  disableOfflineQueue: { disableOfflineQueue: true },
  pingInterval: { pingInterval: 100 },
  commandsQueueMaxLength: { commandsQueueMaxLength: 1_000 },
  'a timeout for commands': { commandTimeout: 5_000 },
  'a database': { database: 3 },
  'a unix socket': { path: '' },
  TLS: { tls: true },
}

const NODE_REDIS_CLUSTER_OPTIONS: Readonly<Record<string, object>> = {
  'nothing set': {},
  keyPrefix: { keyPrefix: 'app:' },
  useReplicas: { useReplicas: true },
  minimizeConnections: { minimizeConnections: true },
  RESP3: { RESP: 3 },
  'numbers as strings': { mapped: 'numbers' },
}

interface IoredisLike {
  readonly status: string
  on(event: 'error' | 'ready', listener: () => void): unknown
  disconnect(): void
}
interface IoredisPackage {
  readonly Redis: new (options: object) => IoredisLike
  readonly Cluster: new (nodes: readonly object[], options: object) => IoredisLike
}

/** What there is to know of a combination before it connects. */
function facts(name: string, what: string, options: object, cluster: boolean) {
  const { keyPrefix = '', db = 0, database = db } = options as Record<string, never>
  const label = `${name}, ${cluster ? 'Cluster, ' : ''}${what}`
  return { label, cluster, keyPrefix: String(keyPrefix), db: Number(database) }
}

function ioredisCombinations(name: string): Combination[] {
  const { Redis, Cluster } = require(name) as IoredisPackage
  const connected = async (client: IoredisLike, options: object) => {
    client.on('error', () => {})
    // With neither a queue nor a connection the first command is refused, by the driver's own rule.
    if ('enableOfflineQueue' in options && client.status !== 'ready')
      await new Promise<void>((resolve) => void client.on('ready', resolve))
    return { client: client as unknown as RedisClient, end: () => client.disconnect() }
  }
  const single = Object.entries(IOREDIS_OPTIONS).map(([what, options]) => ({
    ...facts(name, what, options, false),
    connect({ port, socket, tlsPort }: Place) {
      const place = 'path' in options ? { path: socket } : { port: 'tls' in options ? tlsPort : port }
      return connected(new Redis({ ...options, ...place }), options)
    },
  }))
  const clusters = Object.entries(IOREDIS_CLUSTER_OPTIONS).map(([what, options]) => ({
    ...facts(name, what, options, true),
    connect: ({ nodes }: Place) => connected(new Cluster(nodes, { ...options }), options),
  }))
  return [...single, ...clusters]
}

interface NodeRedisLike {
  on(event: 'error', listener: () => void): unknown
  connect(): Promise<unknown>
  quit(): Promise<unknown>
}
interface NodeRedisPackage {
  readonly RESP_TYPES?: Readonly<Record<'NUMBER' | 'BLOB_STRING' | 'SIMPLE_STRING', number>>
  readonly createClient: (options: object) => NodeRedisLike
  readonly createCluster: (options: object) => NodeRedisLike
}
interface NodeRedisWish {
  readonly mapped?: 'numbers' | 'strings'
  readonly path?: string
  readonly tls?: boolean
  readonly commandTimeout?: number
}

function nodeRedisCombinations(name: string): Combination[] {
  const { RESP_TYPES, createClient, createCluster } = require(name) as NodeRedisPackage
  // Version 4 speaks RESP2, and knows neither a mapping nor a timeout. Only version 6 does anything with a prefix.
  const known = (all: Readonly<Record<string, object>>): [string, object][] =>
    Object.entries(all).filter(
      ([, options]) =>
        (RESP_TYPES !== undefined ||
          !('RESP' in options || 'mapped' in options || 'commandTimeout' in options)) &&
        (name === 'redis-6' || !('keyPrefix' in options)),
    )
  const optionsOf = ({ mapped, path: _, tls: __, commandTimeout, ...others }: NodeRedisWish): object => {
    if (RESP_TYPES === undefined) return others
    const typeMapping =
      mapped === 'numbers'
        ? { [RESP_TYPES.NUMBER]: String }
        : { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.SIMPLE_STRING]: Buffer }
    const commandOptions = {
      ...(mapped !== undefined && { typeMapping }),
      ...(commandTimeout !== undefined && { timeout: commandTimeout }),
    }
    return { ...others, ...(Object.keys(commandOptions).length > 0 && { commandOptions }) }
  }
  const connected = async (client: NodeRedisLike) => {
    client.on('error', () => {})
    await client.connect()
    return { client: client as unknown as RedisClient, end: () => client.quit() }
  }
  const single = known(NODE_REDIS_OPTIONS).map(([what, options]) => ({
    ...facts(name, what, options, false),
    connect({ port, socket, tlsPort }: Place) {
      const { path, tls } = options as NodeRedisWish
      const at = tls === true ? { port: tlsPort, tls, ...TLS } : { port }
      return connected(
        createClient({ socket: path === undefined ? at : { path: socket }, ...optionsOf(options) }),
      )
    },
  }))
  const clusters = known(NODE_REDIS_CLUSTER_OPTIONS).map(([what, options]) => ({
    ...facts(name, what, options, true),
    connect: ({ nodes }: Place) =>
      connected(createCluster({ rootNodes: nodes.map((socket) => ({ socket })), ...optionsOf(options) })),
  }))
  return [...single, ...clusters]
}

export const COMBINATIONS: readonly Combination[] = [
  ...['ioredis', 'ioredis-6', 'iovalkey'].flatMap(ioredisCombinations),
  ...['redis', 'redis-6', 'redis-4'].flatMap(nodeRedisCombinations),
]
