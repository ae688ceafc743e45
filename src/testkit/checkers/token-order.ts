import type { Hold } from '../holds.ts'
import { byName } from './violation.ts'
import type { Violation } from './violation.ts'

/**
 * No two grants of a name share a token; a grant that was returned before another one, which it excludes, was even
 * asked for has the smaller token; and a lease keeps its token for life. Those that may hold a name together (readers,
 * permits) owe each other order only where the later one was a new claim at the store: a process may hand a claim on, with
 * tokens that it has reserved in advance.
 */
export function checkTokenOrder(holds: readonly Hold[]): Violation[] {
  return [...byName(holds).values()].flatMap((group) => [
    ...same(group),
    ...unordered(group),
    ...changed(group),
  ])
}

function same(holds: readonly Hold[]): Violation[] {
  const seen = new Map<bigint, Hold>()
  return holds.flatMap((hold) => {
    const other = seen.get(hold.token)
    seen.set(hold.token, hold)
    return other === undefined ? [] : violation(`${show(hold)} and ${show(other)} have the same token`, hold)
  })
}

function unordered(holds: readonly Hold[]): Violation[] {
  const returned = [...holds].sort((a, b) => (a.from < b.from ? -1 : 1))
  const asked = [...holds].sort((a, b) => (a.invoked < b.invoked ? -1 : 1))
  /** The grant with the largest token so far, for each weight: there are few weights. */
  const highest = new Map<number, Hold>()
  const violations: Violation[] = []
  let next = 0
  for (const later of asked) {
    for (
      let earlier = returned[next];
      earlier !== undefined && earlier.from < later.invoked;
      earlier = returned[next]
    ) {
      const before = highest.get(earlier.weight)
      if (before === undefined || before.token < earlier.token) highest.set(earlier.weight, earlier)
      next += 1
    }
    for (const [weight, earlier] of highest) {
      const excluded = weight + later.weight > later.capacity
      if ((excluded || later.fresh === true) && earlier.token > later.token) {
        violations.push(
          ...violation(`${show(later)} came after ${show(earlier)} and has the smaller token`, later),
        )
      }
    }
  }
  return violations
}

function changed(holds: readonly Hold[]): Violation[] {
  return holds.flatMap((hold) => {
    const other = hold.laterTokens.find((token) => token !== hold.token)
    return other === undefined ? [] : violation(`${show(hold)} changed its token to ${other}`, hold)
  })
}

function show({ name, process, op, token }: Hold): string {
  return `${process}#${op} of "${name}" (token ${token})`
}

function violation(message: string, { from }: Hold): Violation[] {
  return [{ rule: 'token-order', message, at: from }]
}
