import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { checkExclusivity } from '../../../src/testkit/checkers/exclusivity.ts'
import { checkFifo } from '../../../src/testkit/checkers/fifo.ts'
import { checkTokenOrder } from '../../../src/testkit/checkers/token-order.ts'
import type { HistoryEvent } from '../../../src/testkit/history.ts'
import { holdsOf } from '../../../src/testkit/holds.ts'
import type { Hold } from '../../../src/testkit/holds.ts'
import { legalHistories } from './legal-history.ts'

const CAPACITIES = [1, 3]
const RUNS = { numRuns: 150 }

function everyHistory(check: (holds: Hold[], events: HistoryEvent[]) => void): void {
  for (const capacity of CAPACITIES) {
    fc.assert(
      fc.property(legalHistories(capacity), (events) => check(holdsOf(events), events)),
      RUNS,
    )
  }
}

/** Two grants that exclude each other, one after the other. */
function conflicting(holds: readonly Hold[]): [Hold, Hold] | undefined {
  for (const later of holds) {
    const earlier = holds.find(
      ({ from, to, weight, capacity }) =>
        from < to && from < later.invoked && weight + later.weight > capacity,
    )
    if (earlier !== undefined && later.from < later.to) return [earlier, later]
  }
  return undefined
}

describe('histories of clients that use the claim queue as they should', () => {
  it('satisfy every checker', () => {
    let grants = 0
    everyHistory((holds) => {
      grants += holds.length
      expect(checkExclusivity(holds)).toEqual([])
      expect(checkTokenOrder(holds)).toEqual([])
      expect(checkFifo(holds)).toEqual({ maxBypass: 0, violations: [] })
    })
    expect(grants).toBeGreaterThan(1000)
  })

  it('break exclusivity when somebody goes on believing', () => {
    let broken = 0
    everyHistory((holds) => {
      const pair = conflicting(holds)
      if (pair === undefined) return
      broken += 1
      const [earlier, later] = pair
      const stretched = holds.map((hold) => (hold === earlier ? { ...hold, to: later.from + 1n } : hold))
      expect(checkExclusivity(stretched)).not.toEqual([])
    })
    expect(broken).toBeGreaterThan(100)
  })

  it('break the order of tokens when two of them are swapped, or one is used twice', () => {
    let broken = 0
    everyHistory((holds) => {
      const pair = conflicting(holds)
      if (pair === undefined) return
      broken += 1
      const [earlier, later] = pair
      const withTokens = (first: bigint, second: bigint): Hold[] =>
        holds.map((hold) =>
          hold === earlier ? { ...hold, token: first } : hold === later ? { ...hold, token: second } : hold,
        )
      expect(checkTokenOrder(withTokens(later.token, earlier.token))).not.toEqual([])
      expect(checkTokenOrder(withTokens(earlier.token, earlier.token))).not.toEqual([])
    })
    expect(broken).toBeGreaterThan(100)
  })

  it('break the order of the queue when a waiter is granted after one that came later', () => {
    let broken = 0
    everyHistory((holds) => {
      const waited = holds.find(({ queued }) => queued !== undefined)
      const overtaking = holds.find(({ invoked }) => waited?.queued !== undefined && invoked > waited.queued)
      if (waited === undefined || overtaking === undefined) return
      broken += 1
      const swapped = holds.map((hold) =>
        hold === waited
          ? { ...hold, token: overtaking.token }
          : hold === overtaking
            ? { ...hold, token: waited.token }
            : hold,
      )
      expect(checkFifo(swapped).violations).not.toEqual([])
      expect(checkFifo(swapped, holds.length).violations).toEqual([])
    })
    expect(broken).toBeGreaterThan(50)
  })
})
