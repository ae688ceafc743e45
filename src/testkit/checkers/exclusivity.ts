import type { Hold } from '../holds.ts'
import { byName } from './violation.ts'
import type { Violation } from './violation.ts'

/** At no time do the weights that clients believe to hold exceed a name's capacity. */
export function checkExclusivity(holds: readonly Hold[]): Violation[] {
  return [...byName(holds).values()].flatMap(checkName)
}

function checkName(holds: readonly Hold[]): Violation[] {
  const starts = holds
    .flatMap(parts)
    .filter(({ from, to }) => from < to)
    .sort(by(({ from }) => from))
  const ends = [...starts].sort(by(({ to }) => to))
  const held = new Set<Hold>()
  const violations: Violation[] = []
  let used = 0
  let ended = 0
  for (const start of starts) {
    // One that ends as another begins does not overlap it.
    for (let end = ends[ended]; end !== undefined && end.to <= start.from; end = ends[ended]) {
      held.delete(end)
      used -= end.weight
      ended += 1
    }
    held.add(start)
    used += start.weight
    const capacity = Math.min(...[...held].map((hold) => hold.capacity))
    if (used > capacity)
      violations.push({ rule: 'exclusivity', message: describe(start, used, [...held]), at: start.from })
  }
  return violations
}

/** A writer that goes on as a reader weighs less from then on. */
export function parts(hold: Hold): Hold[] {
  const { readsFrom, to } = hold
  if (readsFrom === undefined || readsFrom >= to) return [hold]
  return [
    { ...hold, to: readsFrom },
    { ...hold, from: readsFrom, weight: 1 },
  ]
}

function by(time: (hold: Hold) => bigint): (a: Hold, b: Hold) => number {
  return (a, b) => (time(a) < time(b) ? -1 : time(a) > time(b) ? 1 : 0)
}

function describe({ name, capacity, from }: Hold, used: number, held: readonly Hold[]): string {
  const who = held.map(({ process, op, token, to }) => `${process}#${op} (token ${token}, until ${to})`)
  return `"${name}" is held ${used} of ${capacity} times at ${from}, by ${who.join(', ')}`
}
