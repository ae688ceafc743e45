import { describe, expect, it } from 'vitest'

import { Holdfast } from '../../../src/locks/holdfast.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { checkExclusivity } from '../../../src/testkit/checkers/exclusivity.ts'
import { checkTokenOrder } from '../../../src/testkit/checkers/token-order.ts'
import { nanoseconds, Recorder } from '../../../src/testkit/history.ts'
import { holdsOf } from '../../../src/testkit/holds.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import { distantStore } from './lesser-stores.ts'

const SEEDS = 20
const ROUNDS = 60

/** Processes behind a network on which messages and answers overtake each other, with waiters that ask very often. */
async function compete(seed: number): Promise<{ lost: number; recorders: Recorder[] }> {
  const env = new VirtualEnv({ seed })
  const store = distantStore(memoryStore({ now: () => env.instant() }), env)
  const holdfasts = [1, 2, 3].map(() => new Holdfast(store, { env, ttl: 1000, patience: 60, wait: Infinity }))
  const recorders = holdfasts.map(
    (_, index) => new Recorder(`p${index}`, { now: () => nanoseconds(env.mono()) }),
  )
  let lost = 0
  const work = holdfasts.map(async (holdfast, index) => {
    const lock = holdfast.mutex('n')
    for (let round = 0; round < ROUNDS; round += 1) {
      const story = recorders[index]?.acquire('n')
      const lease = await lock.acquire()
      story?.acquired(lease)
      await env.sleep(env.random() * 40)
      story?.releasing()
      if ((await lease.release()) !== 'released') lost += 1
      await env.sleep(env.random() * 10)
    }
    await holdfast.close()
  })
  await env.until(Promise.all(work))
  return { lost, recorders }
}

describe('a store whose messages overtake its answers', () => {
  it('costs nobody a lease that was renewed in time, and never lets two hold a lock', async () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const { lost, recorders } = await compete(seed)
      const holds = holdsOf(recorders.flatMap(({ events }) => events))
      expect([seed, lost]).toEqual([seed, 0])
      expect([...checkExclusivity(holds), ...checkTokenOrder(holds)]).toEqual([])
    }
  })
})
