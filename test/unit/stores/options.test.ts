import { describe, expect, it } from 'vitest'

import { open } from '../../../src/open.ts'
import { startServer } from '../../../src/server/index.ts'
import { holdfastStore, openHoldfastStore } from '../../../src/stores/holdfast/index.ts'
import { memcachedStore, openMemcachedStore } from '../../../src/stores/memcached/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { mysqlStore, openMysqlStore } from '../../../src/stores/mysql/index.ts'
import { openPostgresStore, postgresStore } from '../../../src/stores/postgres/index.ts'
import { openRedlockStore, quorumStore } from '../../../src/stores/quorum/index.ts'
import { openRedisStore, redisStore } from '../../../src/stores/redis/index.ts'
import { openSqliteStore, sqliteStore } from '../../../src/stores/sqlite/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'

/** What plain JavaScript can pass. */
type Any = never
const CLIENT = {} as Any
const nodes = [1, 2, 3].map(() => memoryStore())

/** Everything that makes a store of options, the options that it is given, and what to say about a slip in one of them. */
const makers: readonly [string, (options: Any) => unknown, string, string][] = [
  ['memoryStore', (options) => memoryStore(options), 'nwo', 'now'],
  ['redisStore', (options) => redisStore(CLIENT, options), 'prefx', 'prefix'],
  ['openRedisStore', (options) => openRedisStore('redis://127.0.0.1:1', options), 'prefx', 'prefix'],
  ['quorumStore', (options) => quorumStore(nodes, options), 'maxTTl', 'maxTtl'],
  ['openRedlockStore', (options) => openRedlockStore('redlock://a,b,c', options), 'prefix_', 'prefix'],
  ['mysqlStore', (options) => mysqlStore(CLIENT, options), 'tabel', 'table'],
  ['openMysqlStore', (options) => openMysqlStore('mysql://127.0.0.1:1/x', options), 'tabel', 'table'],
  ['postgresStore', (options) => postgresStore(CLIENT, options), 'shema', 'schema'],
  [
    'openPostgresStore',
    (options) => openPostgresStore('postgres://127.0.0.1:1/x', options),
    'lisen',
    'listen',
  ],
  ['sqliteStore', (options) => sqliteStore(CLIENT, options), 'migrat', 'migrate'],
  ['openSqliteStore', (options) => openSqliteStore('sqlite::memory:', options), 'tabel', 'table'],
  ['memcachedStore', (options) => memcachedStore('memcached://127.0.0.1:1', options), 'pasword', 'password'],
  ['openMemcachedStore', (options) => openMemcachedStore('memcached://127.0.0.1:1', options), 'usr', 'user'],
  ['zookeeperStore', (options) => zookeeperStore('127.0.0.1:1', options), 'rot', 'root'],
  ['holdfastStore', (options) => holdfastStore('holdfast://127.0.0.1:1', options), 'tokn', 'token'],
  ['openHoldfastStore', (options) => openHoldfastStore('holdfast://127.0.0.1:1', options), 'tokn', 'token'],
  ['startServer', (options) => startServer(options), 'lisen', 'listen'],
]

const problem = async (attempt: () => unknown): Promise<unknown> => {
  try {
    return await attempt()
  } catch (error) {
    return error
  }
}

describe('options of a store', () => {
  it.each(makers)(
    '%s refuses one that is misspelt, with the one that was meant',
    async (_, make, wrong, meant) => {
      const error = await problem(() => make({ [wrong]: 'x' } as Any))
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', argument: wrong })
      expect(String(error)).toContain(`"${meant}"`)
    },
  )

  it.each(makers)('%s wants an object', async (_, make) => {
    expect(await problem(() => make('x' as Any))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      argument: 'options',
    })
  })

  it('that belong to the store behind a URL are for the store', async () => {
    const holdfast = await open('memory:', { token: undefined, ca: undefined, owner: undefined })
    await holdfast.close()
    // Nobody listens there: what matters is that the certificate is none of the lock's own options.
    await expect(open('holdfasts://127.0.0.1:1', { ca: 'PEM' })).rejects.not.toMatchObject({
      code: 'INVALID_ARGUMENT',
      argument: 'ca',
    })
  })
})
