import { describe, expect, it } from 'vitest'

import { expectedOf, expectedOfAll, nemesis } from '../../../src/lab/live/index.ts'
import type { Nemesis } from '../../../src/lab/live/index.ts'
import { capabilities as memcached } from '../../../src/stores/memcached/capabilities.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'

const { capabilities: memory } = memoryStore()
const redisLike = {
  ...memory,
  guarantees: {
    holderCrash: 'holds',
    holderPause: 'fenced',
    partition: 'holds',
    storeRestart: 'fenced',
    failover: 'fenced',
    storeClockJump: 'fenced',
  },
} as const

const named = (kind: string): Nemesis => {
  const found = nemesis(kind)
  if (found === undefined) throw new Error(`there is no fault "${kind}"`)
  return found
}

describe('What is expected of a run', () => {
  it('is that everything holds, where the table says so or has nothing to say', () => {
    for (const kind of ['none', 'kill', 'cut', 'partition', 'script-flush']) {
      for (const check of ['exclusivity', 'lost update', 'token order', 'liveness'])
        expect(expectedOf(check, named(kind), redisLike)).toBe('holds')
    }
  })

  it('is a lost update, and no false belief, of a holder that stands still', () => {
    expect(expectedOf('exclusivity', named('pause'), redisLike)).toBe('holds')
    expect(expectedOf('lost update', named('pause'), redisLike)).toBe('breaks')
    expect(expectedOf('lost update, fenced', named('pause'), redisLike)).toBe('holds')
  })

  it('is that two believe, and the tokens help, where the store forgets or its clock jumps', () => {
    for (const kind of ['wipe', 'clock-jump']) {
      expect(expectedOf('exclusivity', named(kind), redisLike)).toBe('breaks')
      expect(expectedOf('token order', named(kind), redisLike)).toBe('holds')
      expect(expectedOf('liveness', named(kind), redisLike)).toBe('holds')
    }
    expect(expectedOf('exclusivity', named('restart'), redisLike)).toBe('may break')
  })

  it('is less of tokens that a store calls weak', () => {
    expect(expectedOf('token order', named('wipe'), memcached)).toBe('may break')
    expect(expectedOf('token order', named('pause'), memcached)).toBe('holds')
  })

  it('is, of several faults in one run, what any of them may break', () => {
    const [kill, pause] = [named('kill'), named('pause')]
    expect(expectedOfAll('lost update', [kill, pause], redisLike)).toBe('may break')
    expect(expectedOfAll('exclusivity', [kill, pause], redisLike)).toBe('holds')
    expect(expectedOfAll('lost update', [pause], redisLike)).toBe('breaks')
  })
})
