import { MikroORM } from '@mikro-orm/mysql'
import { PrismaMariaDb } from '@prisma/adapter-mariadb'
import { drizzle } from 'drizzle-orm/mysql2'
import { Holdfast } from 'holdfast'
import { fenced, mysqlStore, openMysqlStore, optimistic } from 'holdfast/mysql'
import type { SqlRunner } from 'holdfast/mysql'
import knex from 'knex'
import { Kysely, MysqlDialect } from 'kysely'
import { createPool as createMariadbPool } from 'mariadb'
import { createPool as createCallbackPool } from 'mysql2'
import { createPool } from 'mysql2/promise'
import type { Pool } from 'mysql2/promise'
import { Sequelize } from 'sequelize'
import { DataSource } from 'typeorm'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'

import { available, mariadb } from '../../scripts/services.mjs'
import type { Server } from '../../scripts/services.mjs'
import { runIn as runInDrizzle } from '../adapters/drizzle.ts'
import { runIn as runInKnex } from '../adapters/knex.ts'
import { runIn as runInKysely } from '../adapters/kysely.ts'
import { runIn as runInMikroOrm } from '../adapters/mikro-orm.ts'
import { runIn as runInPrisma } from '../adapters/prisma.ts'
import { runIn as runInSequelize } from '../adapters/sequelize.ts'
import { runIn as runInTypeorm } from '../adapters/typeorm.ts'
import { ormCases } from './cases.ts'
import type { Orm } from './cases.ts'
import { prismaClient } from './prisma-client.ts'

const ORMS: Readonly<Record<string, (url: string) => Orm | Promise<Orm>>> = {
  Prisma: (url) => {
    const prisma = prismaClient('mysql', new PrismaMariaDb(url.replace('mysql:', 'mariadb:')))
    return {
      transaction: (work) => prisma.$transaction((tx) => work(runInPrisma(tx))),
      outside: runInPrisma(prisma),
      close: () => prisma.$disconnect(),
    }
  },
  Drizzle: (url) => {
    const pool = createPool(url)
    const db = drizzle(pool)
    return {
      transaction: (work) => db.transaction((tx) => work(runInDrizzle(tx))),
      outside: runInDrizzle(db),
      close: () => pool.end(),
    }
  },
  Kysely: (url) => {
    const db = new Kysely<unknown>({ dialect: new MysqlDialect({ pool: createCallbackPool(url) }) })
    return {
      transaction: (work) => db.transaction().execute((trx) => work(runInKysely(trx))),
      outside: runInKysely(db as never),
      close: () => db.destroy(),
    }
  },
  Knex: (url) => {
    const db = knex({ client: 'mysql2', connection: url })
    return {
      transaction: (work) => db.transaction((trx) => work(runInKnex(trx))),
      outside: runInKnex(db as never),
      close: () => db.destroy(),
    }
  },
  TypeORM: async (url) => {
    const source = await new DataSource({ type: 'mysql', url }).initialize()
    return {
      transaction: (work) => source.transaction((manager) => work(runInTypeorm(manager))),
      outside: runInTypeorm(source.manager),
      close: () => source.destroy(),
    }
  },
  Sequelize: (url) => {
    const sequelize = new Sequelize(url, { logging: false })
    return {
      transaction: (work) =>
        sequelize.transaction((transaction) => work(runInSequelize(sequelize, transaction))),
      outside: runInSequelize(sequelize, undefined as never),
      close: () => sequelize.close(),
    }
  },
  MikroORM: async (url) => {
    const orm = await MikroORM.init({
      clientUrl: url,
      entities: [],
      discovery: { warnWhenNoEntities: false },
      allowGlobalContext: true,
    })
    return {
      transaction: (work) => orm.em.transactional((em) => work(runInMikroOrm(em))),
      outside: runInMikroOrm(orm.em),
      close: () => orm.close(),
    }
  },
}

describe.skipIf(!available('mariadb'))('MariaDB', () => {
  let server: Server
  let admin: Pool

  beforeAll(async () => {
    server = await mariadb()
    admin = createPool({ uri: server.url, connectionLimit: 1 })
    await admin.query('CREATE TABLE entries (line varchar(100) NOT NULL)')
    await admin.query(`CREATE TABLE stock (shop varchar(20), item int, left_count int, version bigint, fence bigint,
      PRIMARY KEY (shop, item))`)
    // The table of locks is there before anybody is in a transaction.
    await (await openMysqlStore(server.url)).close()
  })
  afterAll(async () => {
    // A connection of the driver mariadb that the server ends is an error that nobody hears.
    const others = `SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user <> 'system user'`
    const alone = async (): Promise<boolean> => ((await admin.query(others))[0] as unknown[]).length === 0
    await vi.waitUntil(alone, { timeout: 30_000, interval: 100 })
    await admin.end()
    await server.stop()
  })

  describe.each(Object.keys(ORMS))('a transaction of %s', (name) => {
    let orm: Orm
    beforeAll(async () => {
      orm = (await ORMS[name]?.(server.url)) as Orm
    })
    afterAll(() => orm.close())

    ormCases(
      () => ({
        open: () => {
          const pool = createPool({ uri: server.url, connectionLimit: 3 })
          return Object.assign(mysqlStore(pool), { close: () => pool.end() })
        },
        optimistic,
        fenced,
        sql: async (text) => (await admin.query(text))[0] as Record<string, unknown>[],
      }),
      () => orm,
    )
  })

  it('takes the driver mariadb for a function alone, and says so before it is used', async () => {
    const pool = createMariadbPool(`${server.url.replace('mysql:', 'mariadb:')}?connectionLimit=1`)
    const connection = await pool.getConnection()
    await admin.query(`INSERT INTO stock VALUES ('d', 1, 5, 0, NULL)`)
    const store = mysqlStore(admin)
    const holdfast = new Holdfast(store)
    const lease = await holdfast.mutex('driver mariadb').acquire()
    const places = { table: 'stock', key: ['shop', 'item'] }
    for (const one of [pool, connection] as never[]) {
      expect(() => mysqlStore(one)).toThrow(/driver mariadb/)
      expect(() => fenced(one, places)).toThrow(/driver mariadb/)
      expect(() => optimistic(one, places)).toThrow(/driver mariadb/)
      await expect(store.guard(lease, one)).rejects.toThrow(/driver mariadb/)
    }
    const run: SqlRunner = (sql, params) => connection.query(sql, params)
    await connection.beginTransaction()
    await store.guard(lease, run)
    const row = { shop: 'd', item: 1 }
    expect(await fenced(run, places).update(row, lease, { left_count: 4 })).toBe('written')
    expect(await optimistic(run, places).update(row, () => ({ left_count: 3 }))).toMatchObject({
      kind: 'updated',
    })
    await connection.rollback()
    await holdfast.close({ drain: 0 })
    await connection.release()
    await pool.end()
  })
})
