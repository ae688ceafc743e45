import type { Opener, Openers } from './opener.ts'

const stores = {
  memory: async (): Promise<Opener> => {
    const { memoryStore } = await import('../stores/memory/index.ts')
    return () => Promise.resolve(memoryStore())
  },
  redis: async (): Promise<Opener> => {
    const { openRedisStore } = await import('../stores/redis/open.ts')
    return (url) => openRedisStore(url)
  },
  redlock: async (): Promise<Opener> => {
    const { openRedlockStore } = await import('../stores/quorum/open.ts')
    return (url) => openRedlockStore(url)
  },
  mysql: async (): Promise<Opener> => {
    const { openMysqlStore } = await import('../stores/mysql/open.ts')
    return (url) => openMysqlStore(url)
  },
  postgres: async (): Promise<Opener> => {
    const { openPostgresStore } = await import('../stores/postgres/open.ts')
    return (url) => openPostgresStore(url)
  },
  sqlite: async (): Promise<Opener> => {
    const { openSqliteStore } = await import('../stores/sqlite/open.ts')
    return (url) => openSqliteStore(url)
  },
  zookeeper: async (): Promise<Opener> => {
    const { openZooKeeperStore } = await import('../stores/zookeeper/open.ts')
    return (url, _, ttl) => openZooKeeperStore(url, ttl)
  },
  memcached: async (): Promise<Opener> => {
    const { openMemcachedStore } = await import('../stores/memcached/open.ts')
    return (url) => openMemcachedStore(url)
  },
  holdfast: async (): Promise<Opener> => (await import('../stores/holdfast/open.ts')).openHoldfastStore,
  http: async (): Promise<Opener> => {
    const { openHttpStore } = await import('../stores/http/open.ts')
    return (url, { token }) => openHttpStore(url, { token })
  },
}

export const openers: Openers = {
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
  http: stores.http,
  https: stores.http,
}
