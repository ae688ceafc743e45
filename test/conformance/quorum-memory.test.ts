import { describe, it } from 'vitest'

import { memoryNode } from 'holdfast/memory'
import { quorumStore } from 'holdfast/quorum'
import type { QuorumClock } from 'holdfast/quorum'
import { vitestConformance } from 'holdfast/testkit'

import { VirtualEnv } from '../../src/testkit/virtual-env.ts'
import { mutexOnly } from './abilities.ts'

/** As long as the longest lease of a case. */
const maxTtl = 120_000

for (const count of [2, 3, 4, 5]) {
  const env = new VirtualEnv({ seed: count })
  const nodes = Array.from({ length: count }, () => memoryNode({ now: () => env.instant() }))
  const clock: QuorumClock = {
    now: () => env.mono(),
    setTimer(callback, ms) {
      const timer = env.setTimer(callback, ms, true)
      return () => timer.cancel()
    },
  }
  vitestConformance(
    { describe, it },
    {
      name: `a quorum of ${count} memory stores`,
      env,
      abilities: { ...mutexOnly, reach: 'process' },
      createStore: () => quorumStore(nodes, { maxTtl, setUp: 'now', clock }),
    },
  )
}
