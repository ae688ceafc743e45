import { Verrou } from '@verrou/core'
import { memoryStore } from '@verrou/core/drivers/memory'
import { redisStore } from '@verrou/core/drivers/redis'

import { mysqlDialect, postgresDialect, sqliteDialect } from './dialects.mjs'
import { TTL } from './settings.mjs'
import { sqliteNode } from './sqlite-node.mjs'

function session(driver, retry, close) {
  const verrou = new Verrou({ default: 'store', stores: { store: { driver } } })
  const settings = retry === undefined ? undefined : { retry }
  return {
    lock(name, ttl = TTL) {
      const lock = verrou.createLock(name, ttl)
      return {
        // It answers false instead of throwing when it gives up.
        acquire: () => lock.acquire(settings).then(orThrow),
        release: () => lock.release(),
      }
    },
    close,
  }
}

function orThrow(acquired) {
  if (acquired === false) throw new Error('not acquired')
}

const onRedis = (id, label, config, retry, more = {}) => ({
  id,
  family: 'verrou',
  package: '@verrou/core',
  label,
  store: 'redis',
  role: 'peer',
  config,
  async open({ url }) {
    const { openIoredis } = await import('./drivers.mjs')
    const { client, close } = await openIoredis(url)
    return session(redisStore({ connection: client }), retry, close)
  },
  ...more,
})

/** In a table, through Kysely; it also knows Knex, which adds more on the way. */
const onTable = (store, dialect, more = {}) => {
  const entry = (id, label, config, retry, extra) => ({
    id,
    family: 'verrou',
    package: '@verrou/core',
    label,
    store,
    role: 'peer',
    config: `${config}, Kysely`,
    async open({ urls }) {
      const { Kysely } = await import('kysely')
      const { kyselyStore } = await import('@verrou/core/drivers/kysely')
      const { dialect: spoken, close } = await dialect(urls[store])
      const connection = new Kysely({ dialect: spoken })
      return session(kyselyStore({ connection, dialect: store }), retry, close)
    },
    ...more,
    ...extra,
  })
  return [
    entry(`verrou-${store}`, '@verrou/core', 'default', undefined),
    entry(
      `verrou-${store}-eager`,
      '@verrou/core, eager',
      'retry delay 10',
      { delay: 10 },
      { waitingOnly: true },
    ),
  ]
}

/** @type {import('./index.mjs').Contestant[]} */
export const verrou = [
  onRedis('verrou', '@verrou/core', 'default', undefined),
  onRedis('verrou-eager', '@verrou/core, eager', 'retry delay 10', { delay: 10 }, { waitingOnly: true }),
  {
    id: 'verrou-memory',
    family: 'verrou',
    package: '@verrou/core',
    label: '@verrou/core (memory)',
    store: 'memory',
    role: 'peer',
    config: 'default',
    open: async () => session(memoryStore(), undefined, () => {}),
  },
  ...onTable('mysql', mysqlDialect),
  ...onTable('postgres', postgresDialect),
  ...onTable('sqlite', sqliteDialect, sqliteNode),
]
