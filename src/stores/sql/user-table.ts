import { checkIdentifier } from './identifiers.ts'

/** What the helpers for users' own tables need of a driver. Values never become part of a statement's text. */
export interface UserTables {
  readonly quote: '"' | '`'
  placeholder(index: number): string
  select(sql: string, values: readonly unknown[]): Promise<readonly Record<string, unknown>[]>
  /** How many rows were changed. */
  change(sql: string, values: readonly unknown[]): Promise<number>
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
