/**
 * The `.sql` files are written for people: the table is called `holdfast_locks`, parameters are `:words`, and `:now` is
 * the server's clock in microseconds. Here they become what a driver takes.
 */

export interface Statement {
  readonly text: string
  /** The parameters in the order in which the driver wants them. */
  readonly params: readonly string[]
}

export interface Flavour {
  /** The table's name, quoted. */
  readonly table: string
  /** The expression for the server's clock: whole microseconds since 1970, free of time zones. */
  readonly now: string
  /** How the nth parameter, from 1, is written. `null`: text takes part in the statement, see `inline`. */
  readonly placeholder: ((index: number) => string) | null
  /** A parameter that is used twice is passed twice. */
  readonly repeats?: boolean
}

// Not the second colon of a PostgreSQL cast, not a time of day inside a string.
const PARAMETER = /(?<![:\w]):([a-z]\w*)/g

export function compile(sql: string, { table, now, placeholder, repeats = false }: Flavour): Statement {
  const params: string[] = []
  const text = sql
    .replaceAll('holdfast_locks', () => table)
    .replace(PARAMETER, (whole, name: string) => {
      if (name === 'now') return now
      if (placeholder === null) return whole
      let index = repeats ? -1 : params.indexOf(name)
      if (index === -1) index = params.push(name) - 1
      return placeholder(index + 1)
    })
  return { text, params }
}

/** A whole folder of them. */
export function compileAll<K extends string>(
  scripts: Readonly<Record<K, { readonly sql: string }>>,
  flavour: Flavour,
): Readonly<Record<K, Statement>> {
  const compiled: Partial<Record<K, Statement>> = {}
  for (const key of Object.keys(scripts) as K[]) compiled[key] = compile(scripts[key].sql, flavour)
  return compiled as Record<K, Statement>
}

export type Value = string | number | null | readonly string[] | readonly (string | null)[]
export type Values = Readonly<Record<string, Value>>

/** For drivers without parameters that can be trusted in every mode: `literal` must be safe by construction. */
export function inline(statement: Statement, values: Values, literal: (value: Value) => string): string {
  const parts = partsOf(statement)
  let text = parts[0] ?? ''
  for (let index = 1; index < parts.length; index += 2) {
    text += literal(valueOf(values, parts[index] ?? '')) + (parts[index + 1] ?? '')
  }
  return text
}

const split = new WeakMap<Statement, readonly string[]>()

/** Text, parameter, text, parameter … text. */
function partsOf(statement: Statement): readonly string[] {
  let parts = split.get(statement)
  if (parts === undefined) {
    parts = statement.text.split(PARAMETER)
    split.set(statement, parts)
  }
  return parts
}

export function valueOf(values: Values, name: string): Value {
  const value = values[name]
  if (value === undefined) throw new Error(`The statement needs :${name}`)
  return value
}
