import type { Counts } from './run.mjs'

interface Row {
  readonly id: string
  readonly cells: readonly string[]
}

/** The page with these rows in its table, and the others as they were. */
export function merge(text: string, rows: readonly Row[], order: readonly string[]): string

export function rowOf(
  entry: { readonly id: string; readonly store: string; readonly server: string },
  outcome: { readonly version: string; readonly suites: Record<string, Counts>; readonly date: string },
): Row
