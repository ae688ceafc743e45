import type { Violation } from './violation.ts'

/** One read-modify-write of a counter. */
export interface Update {
  readonly read: number
  readonly wrote: number
  /** `unknown`: it may or may not have been stored. */
  readonly outcome: 'stored' | 'unknown'
}

/** Every update builds on the one before it: nobody's increment was overwritten by somebody who had read too early. */
export function checkLostUpdates(updates: readonly Update[], final: number): Violation[] {
  const stored = updates.filter(({ outcome }) => outcome === 'stored')
  const unknown = updates.length - stored.length
  const violations: Violation[] = []
  const readers = new Map<number, number>()
  for (const { read, wrote } of stored) {
    readers.set(read, (readers.get(read) ?? 0) + 1)
    if (wrote !== read + 1) violations.push(violation(`an increment of ${read} wrote ${wrote}`))
  }
  for (const [read, count] of readers) {
    if (count > 1)
      violations.push(violation(`${count} increments were built on ${read}; all but one are lost`))
  }
  if (final < stored.length || final > stored.length + unknown) {
    const most = unknown === 0 ? '' : ` and ${unknown} that may have been`
    violations.push(violation(`the counter shows ${final} after ${stored.length} stored increments${most}`))
  }
  return violations
}

function violation(message: string): Violation {
  return { rule: 'lost-update', message }
}
