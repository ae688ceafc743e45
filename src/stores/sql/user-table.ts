import { checkIdentifier } from './identifiers.ts'

/** What the helpers for users' own tables need of a driver. Values never become part of a statement's text. */
export interface UserTables {
  readonly quote: '"' | '`'
  placeholder(index: number): string
  select(sql: string, values: readonly unknown[]): Promise<readonly Record<string, unknown>[]>
  /** How many rows were changed. */
  change(sql: string, values: readonly unknown[]): Promise<number>
  /** A row's key, as it has to be compared. */
  key(value: unknown): unknown
  /** What makes a SELECT read the newest row, whatever picture its transaction has. */
  readonly newest: string
  /**
   * Whether statements are part of a transaction, of somebody else's then. Nothing may be tried again there: the server may
   * have undone what came before, and what follows would be committed by itself.
   */
  inTransaction(): boolean | Promise<boolean>
  /** The server undid the statement because of another one: deadlock, serialization failure, busy. */
  undone(error: unknown): boolean
}

/** A table's or column's name, checked and quoted; `schema.table` is two names. */
export function quoted({ quote }: UserTables, argument: string, name: string): string {
  return name
    .split('.')
    .map((part) => {
      checkIdentifier(argument, part)
      return `${quote}${part}${quote}`
    })
    .join('.')
}

/** Builds one statement: its text, and its values in order. */
export class Wording {
  readonly values: unknown[] = []
  private readonly tables: UserTables

  constructor(tables: UserTables) {
    this.tables = tables
  }

  value(value: unknown): string {
    return this.tables.placeholder(this.values.push(value))
  }

  assignments(changes: Readonly<Record<string, unknown>>): string[] {
    return Object.entries(changes).map(
      ([column, value]) => `${quoted(this.tables, 'column', column)} = ${this.value(value)}`,
    )
  }
}
