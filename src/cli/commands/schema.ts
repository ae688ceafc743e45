import { EXIT, UsageError } from '../exit.ts'
import { command } from '../spec.ts'
import type { Command } from '../spec.ts'
import { print } from '../table.ts'

const options = {
  table: { value: 'NAME', help: 'the name of the table' },
} as const

const DIALECTS: Readonly<Record<string, () => Promise<(given: { readonly table?: string }) => string>>> = {
  mysql: async () => (await import('../../stores/mysql/index.ts')).mysqlSchema,
  postgres: async () => (await import('../../stores/postgres/index.ts')).postgresSchema,
  sqlite: async () => (await import('../../stores/sqlite/index.ts')).sqliteSchema,
}

const schema: Command = command({
  spec: {
    name: 'schema',
    usage: `${Object.keys(DIALECTS).join(' | ')} [options]`,
    summary: 'Prints the SQL that a database store needs',
    details:
      'The stores create their table by themselves where they may; this is for those whose databases forbid it.',
    options,
    words: [1, 1],
    choices: Object.keys(DIALECTS),
    examples: ['holdfast schema postgres | psql "$DATABASE_URL"', 'holdfast schema mysql --table app_locks'],
  },

  async run({ options: given, words: [dialect = ''] }) {
    const load = Object.hasOwn(DIALECTS, dialect) ? DIALECTS[dialect] : undefined
    if (load === undefined) {
      throw new UsageError(
        `There is a schema for ${Object.keys(DIALECTS).join(' and ')}; not for "${dialect}".`,
      )
    }
    const text = (await load())(given.table === undefined ? {} : { table: given.table })
    print(text.trimEnd())
    return EXIT.ok
  },
})

export default schema
