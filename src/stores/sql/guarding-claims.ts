import { HoldfastError } from '../../core/errors.ts'
import { isSqlState } from './failure.ts'

/**
 * Claims of this process that guard a transaction. Giving one up has to wait for the end of that: where the claim is not
 * here, nobody needs to look whether it does. One list for the process, whatever the number of stores, and of copies of
 * this package.
 */
const LIST = Symbol.for('holdfast.guarding')
const shared = globalThis as { [LIST]?: Map<string, number> }
const counts = (shared[LIST] ??= new Map<string, number>())

export function isGuarding(id: string): boolean {
  return counts.size > 0 && counts.has(id)
}

/** Returns what takes them out again. */
export function keepGuarding(ids: readonly string[]): () => void {
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1)
  return () => {
    for (const id of ids) {
      const left = (counts.get(id) ?? 1) - 1
      if (left > 0) counts.set(id, left)
      else counts.delete(id)
    }
  }
}

interface Guarding {
  readonly ids: readonly string[]
  /** Throws unless the leases stand. */
  end(): void
}

/**
 * Runs a transaction whose claims are in the list from before its commit until its end is known. Without the server's own
 * word the commit may still be under way: then they stay there, and whoever gives one up waits for the server.
 */
export async function guarding<T>(
  guard: Guarding,
  transaction: (beforeCommit: () => void) => Promise<T>,
): Promise<T> {
  let release = (): void => {}
  try {
    const result = await transaction(() => {
      release = keepGuarding(guard.ids)
      guard.end()
    })
    release()
    return result
  } catch (error) {
    if (error instanceof HoldfastError || isServersWord(error)) release()
    throw error
  }
}

/** Servers answer with a code of five characters (`sqlState` in mysql2), and not with one of class 08: the connection's. */
function isServersWord(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  const { sqlState, code } = error as { readonly sqlState?: unknown; readonly code?: unknown }
  const state = typeof sqlState === 'string' ? sqlState : code
  return typeof state === 'string' && isSqlState(state) && !/^(08|57P)/.test(state)
}

/** The claim has ended. */
export function guardsNoMore(id: string): void {
  if (counts.size > 0) counts.delete(id)
}
