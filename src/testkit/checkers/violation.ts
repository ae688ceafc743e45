import assert from 'node:assert/strict'

/** A rule that a history breaks. */
export interface Violation {
  readonly rule:
    | 'exclusivity'
    | 'token-order'
    | 'fifo'
    | 'fenced-resource'
    | 'lost-update'
    | 'leftovers'
    | 'linearizability'
    | 'liveness'
    | 'noise'
    | 'abort-latency'
    | 'belief'
  readonly message: string
  /** When, on the clock of the history, where that can be said. */
  readonly at?: bigint
}

const SHOWN = 10

/** Throws with the first few violations, if there are any. */
export function assertNone(violations: readonly Violation[]): void {
  const lines = violations.slice(0, SHOWN).map(({ rule, message }) => `${rule}: ${message}`)
  if (violations.length > SHOWN) lines.push(`… and ${violations.length - SHOWN} more`)
  assert.equal(violations.length, 0, lines.join('\n'))
}

/** Splits things by the name that they are about. */
export function byName<T extends { readonly name: string }>(things: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const thing of things) {
    const group = groups.get(thing.name)
    if (group === undefined) groups.set(thing.name, [thing])
    else group.push(thing)
  }
  return groups
}
