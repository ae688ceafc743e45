/** The version that `schema.sql` of every dialect carries in words: `holdfast schema 1`. */
export const SCHEMA_VERSION = 1

/** Reads the version out of a table's comment; a table without one is not ours, and is treated as the first version. */
export function schemaVersion(comment: string): number {
  return Number(/holdfast schema (\d+)/.exec(comment)?.[1] ?? 1)
}
