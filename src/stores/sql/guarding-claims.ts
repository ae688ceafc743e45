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

/** The claim has ended. */
export function guardsNoMore(id: string): void {
  if (counts.size > 0) counts.delete(id)
}
