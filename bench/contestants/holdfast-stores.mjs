// How each store of ours is opened here: with the user's own driver, so that its requests are counted.
import { load } from './dist.mjs'
import { ZOOKEEPER_TTL } from './settings.mjs'

const stores = {
  memory: async () => {
    const { memoryStore } = await load('stores/memory/index.js')
    return { store: memoryStore(), close: () => {} }
  },
  redis: async ({ url }, driver) => {
    const { redisStore } = await load('stores/redis/index.js')
    // Only here: a measurement of memory must not carry two drivers that it never uses.
    const { DRIVERS } = await import('./drivers.mjs')
    const { client, close } = await DRIVERS[driver](url)
    return { store: redisStore(client), close }
  },
  mysql: async ({ urls }) => {
    const { mysqlStore } = await load('stores/mysql/index.js')
    const { openMysql } = await import('./databases.mjs')
    const { pool, close } = await openMysql(urls.mysql)
    return { store: mysqlStore(pool), close }
  },
  postgres: async ({ urls }) => {
    const { postgresStore } = await load('stores/postgres/index.js')
    const { openPostgres } = await import('./databases.mjs')
    const { pool, close } = await openPostgres(urls.postgres)
    return { store: postgresStore(pool), close }
  },
  sqlite: async ({ urls }) => {
    const { sqliteStore } = await load('stores/sqlite/index.js')
    const { openSqlite } = await import('./databases.mjs')
    const { database, close } = await openSqlite(urls.sqlite)
    database.exec('PRAGMA busy_timeout = 5')
    return { store: sqliteStore(database), close }
  },
  memcached: async ({ urls }) => {
    await import('./sockets.mjs')
    const { openMemcachedStore } = await load('stores/memcached/index.js')
    return { store: await openMemcachedStore(urls.memcached), close: () => {} }
  },
  holdfast: async ({ urls }) => {
    await import('./sockets.mjs')
    const { openHoldfastStore } = await load('stores/holdfast/index.js')
    return { store: await openHoldfastStore(urls.holdfast), close: () => {} }
  },
  zookeeper: async ({ urls }) => {
    await import('./sockets.mjs')
    const { openZooKeeperStore } = await load('stores/zookeeper/index.js')
    return { store: await openZooKeeperStore(`${urls.zookeeper}?ttl=${ZOOKEEPER_TTL}`), close: () => {} }
  },
}

/** @returns {Promise<{ store: any, close: () => unknown }>} */
export const openStore = (store, endpoint, driver) => stores[store](endpoint, driver)
