import type { Openers, Row } from './opener.ts'

const stores = {
  memory: {
    load: async () => {
      const { memoryStore } = await import('../stores/memory/index.ts')
      return () => Promise.resolve(memoryStore())
    },
  },
  redis: {
    load: async () => {
      const { openRedisStore } = await import('../stores/redis/open.ts')
      return (url, options) => openRedisStore(url, options)
    },
    options: ['prefix', 'driver', 'fencing', 'replicas', 'replicaTimeout'],
  },
  redlock: {
    load: async () => {
      const { openRedlockStore } = await import('../stores/quorum/open.ts')
      return (url, options) => openRedlockStore(url, options)
    },
    options: ['prefix', 'driver'],
  },
  mysql: {
    load: async () => {
      const { openMysqlStore } = await import('../stores/mysql/open.ts')
      return (url) => openMysqlStore(url)
    },
  },
  postgres: {
    load: async () => {
      const { openPostgresStore } = await import('../stores/postgres/open.ts')
      return (url) => openPostgresStore(url)
    },
  },
  sqlite: {
    load: async () => {
      const { openSqliteStore } = await import('../stores/sqlite/open.ts')
      return (url) => openSqliteStore(url)
    },
  },
  zookeeper: {
    load: async () => {
      const { openZooKeeperStore } = await import('../stores/zookeeper/open.ts')
      return (url, _, ttl) => openZooKeeperStore(url, ttl)
    },
  },
  memcached: {
    load: async () => {
      const { openMemcachedStore } = await import('../stores/memcached/open.ts')
      return (url) => openMemcachedStore(url)
    },
  },
  holdfast: {
    load: async () => {
      const { openHoldfastStore } = await import('../stores/holdfast/open.ts')
      return (url, { token, ca }) => openHoldfastStore(url, { token, ca })
    },
  },
  http: {
    load: async () => {
      const { openHttpStore } = await import('../stores/http/open.ts')
      return (url, { token }) => openHttpStore(url, { token })
    },
  },
} satisfies Record<string, Row>

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
