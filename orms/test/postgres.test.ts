import { MikroORM } from '@mikro-orm/postgresql'
import { PrismaPg } from '@prisma/adapter-pg'
import { drizzle } from 'drizzle-orm/node-postgres'
import { fenced, optimistic, openPostgresStore, postgresStore } from 'holdfast/postgres'
import knex from 'knex'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgresJs from 'postgres'
import { Sequelize } from 'sequelize'
import { DataSource } from 'typeorm'
import { afterAll, beforeAll, describe } from 'vitest'

import { available, postgres } from '../../scripts/services.mjs'
import type { Server } from '../../scripts/services.mjs'
import { runIn as runInDrizzle } from '../adapters/drizzle.ts'
import { runIn as runInKnex } from '../adapters/knex.ts'
import { runIn as runInKysely } from '../adapters/kysely.ts'
import { runIn as runInMikroOrm } from '../adapters/mikro-orm.ts'
import { runIn as runInPostgresJs } from '../adapters/postgres-js.ts'
import { runIn as runInPrisma } from '../adapters/prisma.ts'
import { runIn as runInSequelize } from '../adapters/sequelize.ts'
import { runIn as runInTypeorm } from '../adapters/typeorm.ts'
import { ormCases } from './cases.ts'
import type { Orm } from './cases.ts'
import { prismaClient } from './prisma-client.ts'

const ORMS: Readonly<Record<string, (url: string) => Orm | Promise<Orm>>> = {
  Prisma: (url) => {
    const prisma = prismaClient('postgresql', new PrismaPg({ connectionString: url }))
    return {
      transaction: (work) => prisma.$transaction((tx) => work(runInPrisma(tx))),
      outside: runInPrisma(prisma),
      close: () => prisma.$disconnect(),
    }
  },
  Drizzle: (url) => {
    const pool = new pg.Pool({ connectionString: url })
    const db = drizzle(pool)
    return {
      transaction: (work) => db.transaction((tx) => work(runInDrizzle(tx))),
      outside: runInDrizzle(db),
      close: () => pool.end(),
    }
  },
  Kysely: (url) => {
    const db = new Kysely<unknown>({
      dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }),
    })
    return {
      transaction: (work) => db.transaction().execute((trx) => work(runInKysely(trx))),
      outside: runInKysely(db as never),
      close: () => db.destroy(),
    }
  },
  Knex: (url) => {
    const db = knex({ client: 'pg', connection: url })
    return {
      transaction: (work) => db.transaction((trx) => work(runInKnex(trx))),
      outside: runInKnex(db as never),
      close: () => db.destroy(),
    }
  },
  TypeORM: async (url) => {
    const source = await new DataSource({ type: 'postgres', url }).initialize()
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
  'postgres.js': (url) => {
    const sql = postgresJs(url)
    return {
      transaction: async (work) => (await sql.begin((tx) => work(runInPostgresJs(tx)))) as never,
      outside: runInPostgresJs(sql as never),
      close: () => sql.end(),
    }
  },
}

describe.skipIf(!available('postgres'))('PostgreSQL', () => {
  let server: Server
  let admin: pg.Pool

  beforeAll(async () => {
    server = await postgres()
    admin = new pg.Pool({ connectionString: server.url })
    admin.on('error', () => {})
    await admin.query('CREATE TABLE entries (line text NOT NULL)')
    await admin.query(`CREATE TABLE stock (shop text, item int, left_count int, version bigint, fence bigint,
      PRIMARY KEY (shop, item))`)
    // The table of locks is there before anybody is in a transaction.
    await (await openPostgresStore(server.url)).close()
  })
  afterAll(async () => {
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
          const pool = new pg.Pool({ connectionString: server.url, max: 3 })
          pool.on('error', () => {})
          const store = postgresStore(pool)
          return Object.assign(store, { close: () => pool.end() })
        },
        optimistic,
        fenced,
        sql: async (text) => (await admin.query<Record<string, unknown>>(text)).rows,
      }),
      () => orm,
    )
  })
})
