import { statSync } from 'node:fs'
import { DatabaseError } from '../sql/failure.ts'

// Taken once: a user's fake timers must not make time stand still here.
const { performance } = globalThis

/** A look at a file costs a tenth of a statement: not more often than this. */
const EVERY_MS = 100

/**
 * Whether a file is still the one that was opened. SQLite goes on with one that was deleted, or that another was put in the
 * place of, and so would two processes with a lock each of the same name.
 */
export class SameFile {
  private readonly path: string
  private readonly opened: string | undefined
  private next = 0
  private gone = false

  constructor(path: string) {
    this.path = path
    this.opened = path === '' ? undefined : identityOf(path)
  }

  /** As of a moment ago. */
  require(): void {
    if (performance.now() < this.next && !this.gone) return
    if (this.isGone()) throw FILE_GONE
  }

  isGone(): boolean {
    this.next = performance.now() + EVERY_MS
    this.gone ||= this.opened !== undefined && identityOf(this.path) !== this.opened
    return this.gone
  }
}

const FILE_GONE = new DatabaseError(
  'The file of the database was deleted or replaced, and what is locked in it is known to nobody else. Open it again',
  'HOLDFAST_FILE_GONE',
)

/** Undefined when there is none. */
function identityOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev}:${stats.ino}`
}
