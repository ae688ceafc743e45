import { describe, expect, it } from 'vitest'

import type { ClaimRequest, Unknown } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import type { Lease } from '../../../src/runtime/lease.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { checkExclusivity } from '../../../src/testkit/checkers/exclusivity.ts'
import { checkTokenOrder } from '../../../src/testkit/checkers/token-order.ts'
import { nanoseconds, Recorder } from '../../../src/testkit/history.ts'
import { holdsOf } from '../../../src/testkit/holds.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import { changed, distantStore, plain } from './lesser-stores.ts'

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

/** A claim of somebody else, straight at the store. */
const rival = (id: string, whenBusy: 'queue' | 'try'): ClaimRequest => ({
  name: 'n',
  id,
  weight: 1,
  capacity: 1,
  ttl: 60_000,
  patience: 60_000,
  tokens: 1,
  whenBusy,
  owner: 'rival',
})

describe('a store whose messages overtake its answers', () => {
  it('costs nobody a lease that was renewed in time, and never lets two hold a lock', async () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const { lost, recorders } = await compete(seed)
      const holds = holdsOf(recorders.flatMap(({ events }) => events))
      expect([seed, lost]).toEqual([seed, 0])
      expect([...checkExclusivity(holds), ...checkTokenOrder(holds)]).toEqual([])
    }
  })

  it('gives nobody a lock by the message of a grant that has run out since', async () => {
    const env = new VirtualEnv()
    const memory = memoryStore({ now: () => env.instant() })
    const unknown: Unknown = { kind: 'unknown', cause: new Error('no answer') }
    let connected = true
    let dropped = 0
    const store = changed(memory, {
      // The first claim that may queue arrives and its answer is lost; those that follow are lost themselves.
      claim: async (request, timeout) => {
        if (!connected) return unknown
        const answer = await memory.claim(plain(request), timeout)
        if (request.whenBusy === 'try' || dropped > 0) return answer
        dropped += 1
        connected = false
        return unknown
      },
    })
    await memory.claim(rival('a.1', 'try'), 0)
    const holdfast = new Holdfast(store, { env, ttl: 1000, patience: 300, wait: Infinity })
    let acquired: Lease | undefined
    const waiting = holdfast
      .mutex('n')
      .acquire()
      .then((lease) => (acquired = lease))
    await env.advance(50)
    expect(connected).toBe(false)
    await memory.release(rival('a.1', 'try'), undefined, 0)
    await env.advance(400)
    const held = await memory.claim(rival('b.1', 'try'), 0)
    expect(held.kind).toBe('held')
    connected = true
    await env.advance(5000)
    expect(acquired).toBeUndefined()
    await memory.release(rival('b.1', 'try'), undefined, 0)
    const lease = await env.until(waiting)
    expect(held.kind === 'held' && lease.token > held.token).toBe(true)
    await env.until(holdfast.close())
  })
})
