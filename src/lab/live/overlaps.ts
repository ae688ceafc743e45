import { parts } from '../../testkit/checkers/exclusivity.ts'
import type { Hold } from '../../testkit/holds.ts'

export interface Overlap {
  readonly name: string
  readonly from: bigint
  readonly to: bigint
  readonly clients: readonly [string, string]
  readonly tokens: readonly [bigint, bigint]
}

/**
 * Where two of them believed at once that they alone hold a name. The checker decides whether that happened; this says
 * where to look, for the picture.
 */
export function overlapsOf(holds: readonly Hold[]): Overlap[] {
  const sorted = holds
    .flatMap(parts)
    .filter(({ from, to }) => from < to)
    .sort((a, b) => (a.from < b.from ? -1 : 1))
  return sorted.flatMap((first, index) => {
    const found: Overlap[] = []
    for (let next = index + 1; next < sorted.length; next += 1) {
      const second = sorted[next] as Hold
      if (second.from >= first.to) break
      if (second.name !== first.name || first.weight + second.weight <= first.capacity) continue
      found.push({
        name: first.name,
        from: second.from,
        to: first.to < second.to ? first.to : second.to,
        clients: [first.process, second.process],
        tokens: [first.token, second.token],
      })
    }
    return found
  })
}
