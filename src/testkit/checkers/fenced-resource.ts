import { byName } from './violation.ts'
import type { Violation } from './violation.ts'

/** What a resource that checks tokens decided about one write, in the order in which it decided. */
export interface FencedWrite {
  readonly name: string
  readonly token: bigint
  readonly accepted: boolean
}

/** Once a write with a token was accepted, no write with a smaller one is; and none is turned away without that reason. */
export function checkFencedResource(writes: readonly FencedWrite[]): Violation[] {
  return [...byName(writes).values()].flatMap((group) => {
    const violations: Violation[] = []
    let highest = -1n
    for (const { name, token, accepted } of group) {
      if (accepted && token < highest) {
        violations.push(violation(`"${name}" accepted token ${token} after ${highest}`))
      } else if (!accepted && token >= highest) {
        violations.push(
          violation(`"${name}" refused token ${token} although it had seen none above ${highest}`),
        )
      }
      if (accepted && token > highest) highest = token
    }
    return violations
  })
}

function violation(message: string): Violation {
  return { rule: 'fenced-resource', message }
}
