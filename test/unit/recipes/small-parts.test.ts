import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'

import { ClosedError, LockAbortedError, LockLostError } from '../../../src/core/errors.ts'
import { asCache } from '../../../src/recipes/cache.ts'
import type { Cache } from '../../../src/recipes/cache.ts'
import { redisCache } from '../../../src/recipes/index.ts'
import type { RedisCacheClient } from '../../../src/recipes/redis-cache.ts'
import { keyFor, lockNameFor } from '../../../src/recipes/cache-key.ts'
import { LeaseTerm, obeyed } from '../../../src/recipes/term.ts'
import type { Lease } from '../../../src/runtime/lease.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'

describe('the key of a cached value', () => {
  const refusal = (problem: RegExp): unknown =>
    expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      argument: 'key',
      message: expect.stringMatching(problem) as string,
    })

  it('is the text that was given, or that the function returns', () => {
    expect(keyFor('all', undefined)).toBe('all')
    expect(keyFor((id: number) => `p:${id}`, 7)).toBe('p:7')
    expect(keyFor(() => '', undefined)).toBe('')
  })

  it('is refused where it would be the same for all, or is none', () => {
    expect(() => keyFor('all', 7)).toThrow(refusal(/is one text for whatever is asked for/))
    expect(() => keyFor('all', null)).toThrow(refusal(/is one text for whatever is asked for/))
    const wrong = (value: unknown) => () => keyFor(() => value as string, 1)
    expect(wrong(7)).toThrow(refusal(/must return a string.*got 7/))
    expect(wrong(null)).toThrow(refusal(/got null/))
    expect(wrong({})).toThrow(refusal(/got an object/))
    expect(wrong('user:[object Object]')).toThrow(refusal(/"\[object Object\]", which every such object is/))
  })

  it('gives the lock its name, or a hash where it cannot be one', () => {
    expect(lockNameFor('p:7')).toBe('cache:p:7')
    for (const key of ['x'.repeat(600), 'a\nb', '\ud800']) {
      expect(lockNameFor(key)).toMatch(/^cache:sha256:[\w-]{43}$/)
      expect(lockNameFor(key)).toBe(lockNameFor(key))
    }
    expect(lockNameFor('\ud800')).not.toBe(lockNameFor('\ud801'))
    expect(lockNameFor('x'.repeat(600))).not.toBe(lockNameFor('x'.repeat(601)))
  })
})

describe('a cache in Redis', () => {
  /** What an ioredis client has of what is used here. */
  function client(reply: unknown, text: unknown = null) {
    const sent: unknown[][] = []
    const call = (...command: unknown[]): Promise<unknown> => {
      sent.push(command)
      return Promise.resolve(reply)
    }
    const fake = {
      sent,
      status: 'ready',
      options: {},
      isCluster: false,
      on: () => fake,
      off: () => fake,
      get: (key: string) => {
        sent.push(['get', key])
        return Promise.resolve(text)
      },
      call,
      evalsha: (...args: unknown[]) => call('evalsha', ...args),
      duplicate: () => fake,
    }
    return { sent, redis: fake as unknown as RedisCacheClient }
  }

  it('reads texts, under its prefix', async () => {
    const { sent, redis } = client(null, 'value')
    expect(await redisCache(redis).get('k')).toBe('value')
    expect(await redisCache(redis, { prefix: 'p/' }).get('k')).toBe('value')
    expect(sent).toEqual([
      ['get', 'cache:{k}'],
      ['get', 'p/{k}'],
    ])
    expect(await redisCache(client(null, null).redis).get('k')).toBeNull()
    expect(await redisCache(client(null, Buffer.from('x€')).redis).get('k')).toBe('x€')
  })

  it('writes with the token, keeps that for longer than the value, and says whether it was accepted', async () => {
    const write = { ttl: 5_000, token: 7n }
    for (const [reply, accepted] of [
      [[1, '7'], true],
      [[0, '9'], false],
    ] as const) {
      const { sent, redis } = client(reply)
      expect(await redisCache(redis, { fenceTtl: 60_000 }).setFenced('k', 'text', write)).toBe(accepted)
      const args = sent[0]?.map(String) ?? []
      expect(args.slice(-6)).toEqual(['cache:{k}', 'cache:{k}:fence', '7', 'text', '5000', '65000'])
    }
    const { sent, redis } = client([1, '7'])
    await redisCache(redis).setFenced('k', 'text', write)
    const month = 31 * 86_400_000
    await redisCache(redis, { fenceTtl: month }).setFenced('k', 'text', { ...write, ttl: month })
    expect(sent.map((command) => String(command.at(-1)))).toEqual(['3605000', String(2 * month)])
  })
})

/** A lease that the test ends. */
function lease(held = true): {
  readonly lease: Lease
  readonly end: (reason: unknown) => void
  held: boolean
} {
  const controller = new AbortController()
  const state = { held }
  const made = {
    name: 'x',
    token: 5n,
    signal: controller.signal,
    get held() {
      return state.held
    },
    assertHeld: (options?: object) => {
      if (!state.held) throw new LockLostError(`lost ${JSON.stringify(options)}`, { lock: 'x', token: 5n })
    },
  }
  return Object.assign(state, {
    lease: made as unknown as Lease,
    end: (reason: unknown) => controller.abort(reason),
  })
}

describe('a term', () => {
  it('lasts until its lease ends, and ends for the same reason', async () => {
    const { lease: own, end } = lease()
    const term = new LeaseTerm(own)
    expect([term.name, term.token, term.lasts]).toEqual(['x', 5n, true])
    const reason = new LockLostError('gone', { lock: 'x', token: 5n })
    end(reason)
    await term.over
    expect([term.lasts, term.signal.reason]).toEqual([false, reason])
  })

  it('is over at once if its lease was', () => {
    const { lease: own, end } = lease()
    end('before')
    const term = new LeaseTerm(own)
    expect([term.signal.aborted, term.signal.reason, term.lasts]).toEqual([true, 'before', false])
  })

  it('ends when it is resigned, while the lease is held; and does not last when that is not', () => {
    const state = lease()
    const term = new LeaseTerm(state.lease)
    state.held = false
    expect(term.lasts).toBe(false)
    expect(() => term.assertHeld({ atLeast: 3 })).toThrow('lost {"atLeast":3}')
    state.held = true
    expect(term.lasts).toBe(true)
    term.resign()
    expect([term.lasts, (term.signal.reason as Error).name]).toEqual([false, 'AbortError'])
  })

  it('knows code that is part of its callback, also below another term’s, until that ends', async () => {
    const [term, other] = [new LeaseTerm(lease().lease), new LeaseTerm(lease().lease)]
    expect(term.isCaller).toBe(false)
    let later = (): boolean => false
    await term.call(async () => {
      expect([term.isCaller, other.isCaller]).toEqual([true, false])
      later = (
        (get) => () =>
          get()
      )(() => term.isCaller)
      await other.call(async () => {
        await Promise.resolve()
        expect([term.isCaller, other.isCaller]).toEqual([true, true])
      })
      expect(other.isCaller).toBe(false)
    })
    expect(later()).toBe(false)
    await expect(
      term.call(() => {
        throw new Error('it failed')
      }),
    ).rejects.toThrow('it failed')
    let wasCaller = true
    await other.call(() => {
      wasCaller = term.isCaller
    })
    expect(wasCaller).toBe(false)
  })
})

describe('an error of a callback that was told to stop', () => {
  const ended = (reason: unknown): LeaseTerm => {
    const { lease: own, end } = lease()
    const term = new LeaseTerm(own)
    end(reason)
    return term
  }
  const lost = (lock: string): LockLostError => new LockLostError('lost', { lock, token: 1n })
  const aborted = new LockAbortedError('aborted', { lock: 'y' } as never)
  const closed = new ClosedError('closed')
  const named = Object.assign(new Error('stopped'), { name: 'AbortError' })
  const reason = new Error('why')

  it.each<[string, unknown, unknown, boolean]>([
    ['the reason itself', reason, reason, true],
    ['caused by the reason', new Error('x', { cause: reason }), reason, true],
    ['an AbortError', named, reason, true],
    [
      'an AbortError of Node’s own, in Jest',
      runInNewContext("Object.assign(new Error('x'), { name: 'AbortError' })"),
      reason,
      true,
    ],
    ['a wait that was aborted', aborted, reason, true],
    ['the loss of its own lock', lost('x'), reason, true],
    ['the loss of another lock', lost('y'), reason, false],
    ['closing, because of that', closed, new ClosedError('x'), true],
    ['closing, of something else', closed, reason, false],
    ['any other error', new Error('x'), reason, false],
    ['an error with another cause', new Error('x', { cause: named }), reason, false],
    ['no error at all', 'x', reason, false],
    ['what only looks like one', { name: 'AbortError' }, reason, false],
  ])('is no failure if it is %s', (_, error, why, expected) => {
    expect(obeyed(error, ended(why))).toBe(expected)
  })

  it('is one while the term lasts', () => {
    const term = new LeaseTerm(lease().lease)
    for (const error of [aborted, named, lost('x')]) expect(obeyed(error, term)).toBe(false)
  })
})

/** As a framework makes it of whatever it is to hear of. */
function watched<T extends object>(map: T): T {
  const get = (target: T, name: string | symbol): unknown => {
    const value: unknown = Reflect.get(target, name, target)
    return typeof value === 'function' ? value.bind(target) : value
  }
  return new Proxy(map, { get })
}

describe('a Map as a cache', () => {
  it.each<[string, () => Map<string, unknown>]>([
    ['of this program', () => new Map()],
    ['that is more than a Map', () => new (class extends Map<string, unknown> {})()],
    ['that somebody watches', () => watched(new Map())],
    ['of another realm', () => runInNewContext('new Map()') as Map<string, unknown>],
  ])('%s forgets what is over', (_, make) => {
    const env = new VirtualEnv()
    const cache = asCache(make(), env) as Cache
    cache.set('k', 'text', 100)
    env.stall(99)
    expect(cache.get('k')).toBe('text')
    env.stall(1)
    expect(cache.get('k')).toBeUndefined()
  })
})
