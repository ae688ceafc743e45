import { InvalidArgumentError } from '../../core/errors.ts'

// Narrower than what the servers allow: such a name means the same in every one of them, quoted or not.
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/

/** Checks a table's, schema's or column's name. Quoting alone would do; a typo is better told than created. */
export function checkIdentifier(argument: string, name: unknown): asserts name is string {
  if (typeof name === 'string' && IDENTIFIER.test(name)) return
  throw new InvalidArgumentError(
    `${argument} must be a name of letters, digits and underscores, at most 63, that begins with no digit`,
    { argument },
  )
}

export interface TableOptions {
  /** Default `holdfast_locks`. */
  readonly table?: string | undefined
  /** The schema (MySQL: database) that the table is in. Default: whatever the connection uses. */
  readonly schema?: string | undefined
}

export const DEFAULT_TABLE = 'holdfast_locks'

/**
 * The table's full name, quoted with the server's quotation mark. `found`: where it is, when nobody has said it. It has to be
 * said in every statement: a program may point a connection at another schema, and would find other locks there.
 */
export function tableName(
  { table = DEFAULT_TABLE, schema }: TableOptions,
  quote: '"' | '`',
  found?: string,
): string {
  checkIdentifier('table', table)
  if (schema !== undefined) checkIdentifier('schema', schema)
  const place = schema ?? found?.replaceAll(quote, quote + quote)
  return place === undefined
    ? `${quote}${table}${quote}`
    : `${quote}${place}${quote}.${quote}${table}${quote}`
}
