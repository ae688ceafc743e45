import { checkOptions } from './core/arguments.ts'
import type { Store } from './core/contract.ts'
import { InvalidArgumentError } from './core/errors.ts'
import { redact } from './core/redact.ts'
import { Holdfast } from './locks/holdfast.ts'
import { OPTIONS } from './locks/options.ts'
import type { HoldfastOptions } from './locks/options.ts'

export interface StoreOptions {
  /** The bearer token for a lock server. Better here, read from a file, than in the URL. */
  readonly token?: string | undefined
  /** Certificates to trust instead of the system's when a lock server is reached by TLS, as PEM. */
  readonly ca?: string | undefined
}

export interface OpenOptions extends Omit<HoldfastOptions, 'closeStore'>, StoreOptions {}

/** `ttl`: what locks will be taken with where nothing else is said, for stores that can get ready for it. */
type Opener = (url: string, options: StoreOptions, ttl?: number) => Promise<Store>

/** Where each store is opened. It and its driver are loaded when a URL asks for them, and not before. */
const stores = {
  memory: async (): Promise<Opener> => {
    const { memoryStore } = await import('./stores/memory/index.ts')
    return () => Promise.resolve(memoryStore())
  },
  redis: async (): Promise<Opener> => {
    const { openRedisStore } = await import('./stores/redis/open.ts')
    return (url) => openRedisStore(url)
  },
  redlock: async (): Promise<Opener> => {
    const { openRedlockStore } = await import('./stores/quorum/open.ts')
    return (url) => openRedlockStore(url)
  },
  mysql: async (): Promise<Opener> => {
    const { openMysqlStore } = await import('./stores/mysql/open.ts')
    return (url) => openMysqlStore(url)
  },
  postgres: async (): Promise<Opener> => {
    const { openPostgresStore } = await import('./stores/postgres/open.ts')
    return (url) => openPostgresStore(url)
  },
  sqlite: async (): Promise<Opener> => {
    const { openSqliteStore } = await import('./stores/sqlite/open.ts')
    return (url) => openSqliteStore(url)
  },
  zookeeper: async (): Promise<Opener> => {
    const { openZooKeeperStore } = await import('./stores/zookeeper/open.ts')
    return (url, _, ttl) => openZooKeeperStore(url, ttl)
  },
  memcached: async (): Promise<Opener> => {
    const { openMemcachedStore } = await import('./stores/memcached/open.ts')
    return (url) => openMemcachedStore(url)
  },
  holdfast: async (): Promise<Opener> => (await import('./stores/holdfast/open.ts')).openHoldfastStore,
}

/** One row a scheme. */
const OPENERS: Readonly<Record<string, () => Promise<Opener>>> = {
  memory: stores.memory,
  redis: stores.redis,
  rediss: stores.redis,
  'redis+sentinel': stores.redis,
  'rediss+sentinel': stores.redis,
  'redis+cluster': stores.redis,
  'rediss+cluster': stores.redis,
  redlock: stores.redlock,
  redlocks: stores.redlock,
  mysql: stores.mysql,
  postgres: stores.postgres,
  postgresql: stores.postgres,
  sqlite: stores.sqlite,
  zookeeper: stores.zookeeper,
  zookeepers: stores.zookeeper,
  memcached: stores.memcached,
  memcacheds: stores.memcached,
  holdfast: stores.holdfast,
  holdfasts: stores.holdfast,
  'holdfast+unix': stores.holdfast,
}

/** The schemes that `open` understands. */
export const SCHEMES: readonly string[] = Object.keys(OPENERS)

/** What opens this URL, if anything does. */
export function openerOf(url: string): () => Promise<Opener> {
  const scheme = /^[a-z][a-z0-9+.-]*(?=:)/i.exec(url)?.[0].toLowerCase()
  const opener = scheme !== undefined && Object.hasOwn(OPENERS, scheme) ? OPENERS[scheme] : undefined
  if (opener !== undefined) return opener
  const problem =
    scheme === undefined ? 'has no scheme' : `has the scheme ${scheme}:, which no store answers to`
  throw new InvalidArgumentError(`The URL "${redact(url)}" ${problem}. Known: ${SCHEMES.join(', ')}.`, {
    argument: 'url',
  })
}

/** The store behind a URL. Whoever opens it closes it. */
export async function openStore(url: string, options: StoreOptions = {}, ttl?: number): Promise<Store> {
  const open = await openerOf(url)()
  return open(url, options, ttl)
}

/** What stores are told in their URL, and what is looked for here. */
const IN_URL = Object.fromEntries(
  ['prefix', 'driver', 'fencing', 'replicas', 'replicaTimeout'].map((name) => [
    name,
    `It belongs to the URL of a store that has it: ?${name}=…`,
  ]),
)

/** Locks at the store behind a URL: `redis://localhost`, `memory:` … Closing the Holdfast closes the store too. */
export async function open(url: string, given: OpenOptions = {}): Promise<Holdfast> {
  checkOptions(given, [...OPTIONS.holdfast, 'token', 'ca'], 'ttl', IN_URL)
  const { token, ca, ...options } = given
  const store = await openStore(url, { token, ca }, options.ttl)
  try {
    return new Holdfast(store, { ...options, closeStore: true })
  } catch (error) {
    await store.close()
    throw error
  }
}
