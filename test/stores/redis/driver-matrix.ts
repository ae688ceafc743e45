import { createRequire } from 'node:module'

import type { RedisClient } from 'holdfast/redis'

const require = createRequire(import.meta.url)

export interface Place {
  readonly port: number
  readonly socket: string
}

export interface Combination {
  /** A package and how its client was set up. */
  readonly label: string
  readonly connect: (place: Place) => Promise<{ readonly client: RedisClient; readonly end: () => unknown }>
}

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
  'a database': { db: 3 },
  'a unix socket': { path: '' },
}

const NODE_REDIS_OPTIONS: Readonly<Record<string, object>> = {
  'nothing set': {},
  RESP3: { RESP: 3 },
  'numbers as strings': { mapped: 'numbers' },
  'numbers as strings, RESP3': { RESP: 3, mapped: 'numbers' },
  'strings as Buffers': { mapped: 'strings' },
  'strings as Buffers, RESP3': { RESP: 3, mapped: 'strings' },
  disableOfflineQueue: { disableOfflineQueue: true },
  pingInterval: { pingInterval: 100 },
  'a database': { database: 3 },
  'a unix socket': { path: '' },
}

interface IoredisLike {
  readonly status: string
  on(event: 'error', listener: () => void): unknown
  disconnect(): void
}

function ioredisCombinations(name: string): Combination[] {
  return Object.entries(IOREDIS_OPTIONS).map(([what, options]) => ({
    label: `${name}, ${what}`,
    connect({ port, socket }) {
      const { Redis } = require(name) as { Redis: new (options: object) => IoredisLike }
      const client = new Redis('path' in options ? { path: socket } : { port, ...options })
      client.on('error', () => {})
      return Promise.resolve({ client: client as unknown as RedisClient, end: () => client.disconnect() })
    },
  }))
}

interface NodeRedisLike {
  on(event: 'error', listener: () => void): unknown
  connect(): Promise<unknown>
  quit(): Promise<unknown>
  withTypeMapping(mapping: object): unknown
}
interface NodeRedisPackage {
  readonly RESP_TYPES?: Readonly<Record<'NUMBER' | 'BLOB_STRING' | 'SIMPLE_STRING', number>>
  readonly createClient: (options: object) => NodeRedisLike
}

function nodeRedisCombinations(name: string): Combination[] {
  const { RESP_TYPES } = require(name) as NodeRedisPackage
  // Version 4 speaks RESP2 and knows no mapping.
  const known = Object.entries(NODE_REDIS_OPTIONS).filter(
    ([, options]) => RESP_TYPES !== undefined || !('RESP' in options || 'mapped' in options),
  )
  return known.map(([what, options]) => ({
    label: `${name}, ${what}`,
    async connect({ port, socket }) {
      const { createClient } = require(name) as NodeRedisPackage
      const { mapped, path, ...others } = options as { mapped?: string; path?: string }
      const typeMapping =
        RESP_TYPES === undefined || mapped === undefined
          ? undefined
          : mapped === 'numbers'
            ? { [RESP_TYPES.NUMBER]: String }
            : { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.SIMPLE_STRING]: Buffer }
      const client = createClient({
        socket: path === undefined ? { port } : { path: socket },
        ...(typeMapping === undefined ? {} : { commandOptions: { typeMapping } }),
        ...others,
      })
      client.on('error', () => {})
      await client.connect()
      return { client: client as unknown as RedisClient, end: () => client.quit() }
    },
  }))
}

export const COMBINATIONS: readonly Combination[] = [
  ...['ioredis', 'ioredis-6', 'iovalkey'].flatMap(ioredisCombinations),
  ...['redis', 'redis-6', 'redis-4'].flatMap(nodeRedisCombinations),
]
