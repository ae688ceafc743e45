import type { Hold } from '../holds.ts'
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

/** What a resource that checks tokens was asked, and decided, on the clock of the history. */
export interface FencedRequest extends FencedWrite {
  readonly client: string
  readonly at: bigint
}

/**
 * What the tokens are worth, seen from the resource: nobody who holds the lock is turned away there unless somebody was given
 * it later, and everybody shows a token that it was given. The resource alone cannot tell: to it, tokens that go back look
 * like clients that come late.
 */
export function checkHolderAdmitted(holds: readonly Hold[], requests: readonly FencedRequest[]): Violation[] {
  const given = new Map(holds.map((hold) => [`${hold.process}\n${hold.name}\n${hold.token}`, hold]))
  return requests.flatMap(({ client, name, token, at, accepted }) => {
    const hold = given.get(`${client}\n${name}\n${token}`)
    if (hold === undefined)
      return [violation(`${client} came to "${name}" with token ${token}, which it was never given`, at)]
    if (accepted || at < hold.from || at >= hold.to) return []
    // Whoever was superseded without knowing it is rightly turned away.
    const supersedes = (other: Hold): boolean =>
      other.name === name && other.token > token && other.from >= hold.from && other.from <= at
    if (holds.some(supersedes)) return []
    return [violation(`"${name}" refused ${client} (token ${token}) while it held the lock`, at)]
  })
}

function violation(message: string, at?: bigint): Violation {
  return { rule: 'fenced-resource', message, ...(at !== undefined && { at }) }
}
