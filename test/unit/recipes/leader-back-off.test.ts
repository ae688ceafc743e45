import { describe, expect, it } from 'vitest'

import { leader } from '../../../src/recipes/index.ts'
import { isClean, world } from '../runtime/far-store.ts'

const failing = () => {
  const w = world()
  const { holdfast, env } = w.process({ ttl: 3000 })
  const onElected = (): never => {
    throw new Error('no database')
  }
  return { w, holdfast, candidate: leader(holdfast, 'boss', { onElected, env }) }
}

describe('a candidate whose callback fails each time', () => {
  it('stands for election while it pauses, and is not said to go on', async () => {
    const { w, candidate } = failing()
    const states = new Set<string>()
    for (let i = 0; i < 300; i++) {
      await w.env.advance(100)
      states.add(candidate.state)
      expect(candidate.health({ grace: 1000 })).not.toHaveProperty('problem')
    }
    expect(states).not.toContain('stepping-down')
    await w.env.until(candidate.stop())
  })

  it('is stopped soon after its Holdfast is closed in the middle of a pause', async () => {
    const { w, holdfast, candidate } = failing()
    await w.env.advance(30_000)
    expect(candidate.state).toBe('campaigning')
    await w.env.until(holdfast.close())
    await w.env.advance(300)
    expect(candidate.state).toBe('stopped')
    await w.env.runUntilIdle(10)
    expect(await isClean(w, 'boss')).toBe(true)
  })
})

it('an onError that rejects later does not end the process', async () => {
  const w = world()
  const { holdfast, env } = w.process({ ttl: 3000 })
  const unheard: unknown[] = []
  const hear = (error: unknown): void => void unheard.push(error)
  process.on('unhandledRejection', hear)
  const candidate = leader(holdfast, 'boss', {
    onElected: () => Promise.reject(new Error('no database')),
    onError: () => Promise.reject(new Error('the log is down')),
    env,
  })
  await w.env.advance(1000)
  await new Promise((resolve) => setImmediate(resolve))
  await w.env.until(candidate.stop())
  process.off('unhandledRejection', hear)
  expect(unheard).toEqual([])
})
