import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { SqliteDatabase } from '../../../src/stores/sqlite/index.ts'

/** Whether this Node can open a SQLite database: by itself, or with better-sqlite3. */
export function hasSqlite(): boolean {
  if (process.getBuiltinModule('node:sqlite') !== undefined) return true
  try {
    createRequire(import.meta.url).resolve('better-sqlite3')
    return true
  } catch {
    return false
  }
}

export interface Folder {
  readonly url: string
  readonly remove: () => void
}

export function folder(): Folder {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-sqlite-'))
  return {
    url: `sqlite:${join(dir, 'locks.db')}`,
    remove: () => rmSync(dir, { recursive: true, force: true }),
  }
}

type Constructor = new (path: string) => SqliteDatabase & { close(): void }

/** With whatever this Node has. */
export function openDatabase(path: string): SqliteDatabase & { close(): void } {
  const builtin = process.getBuiltinModule('node:sqlite') as { DatabaseSync: Constructor } | undefined
  const Database = builtin?.DatabaseSync ?? (createRequire(import.meta.url)('better-sqlite3') as Constructor)
  return new Database(path)
}
