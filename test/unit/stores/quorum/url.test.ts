import { describe, expect, it } from 'vitest'

import { settingsOf, checkNodes } from '../../../../src/stores/quorum/options.ts'
import { capabilitiesOf } from '../../../../src/stores/quorum/capabilities.ts'
import { parseRedlockUrl } from '../../../../src/stores/quorum/url.ts'
import { parseUrl } from '../../../../src/stores/redis/url.ts'
import { memoryNode, memoryStore } from '../../../../src/stores/memory/index.ts'
import type { Store } from '../../../../src/core/contract.ts'

describe('a redlock URL', () => {
  it('names servers, one login and database for all, and settings', () => {
    expect(
      parseRedlockUrl('redlock://me:pw@A:1,b,[::1],[::2]:7/3?setup=now&maxTtl=5000&nodeTimeout=70'),
    ).toEqual({
      nodes: [
        { url: 'redis://me:pw@A:1/3', label: 'a:1' },
        { url: 'redis://me:pw@b/3', label: 'b:6379' },
        { url: 'redis://me:pw@[::1]/3', label: '[::1]:6379' },
        { url: 'redis://me:pw@[::2]:7/3', label: '[::2]:7' },
      ],
      options: {
        setUp: 'now',
        maxTtl: 5_000,
        nodeTimeout: 70,
        labels: ['a:1', 'b:6379', '[::1]:6379', '[::2]:7'],
      },
    })
    expect(parseRedlockUrl('redlocks://a,b').nodes[0]).toEqual({ url: 'rediss://a', label: 'a:6379' })
    expect(parseRedlockUrl('redlock://a,b?SETUP=wait').options).toEqual({
      setUp: 'wait',
      labels: ['a:6379', 'b:6379'],
    })
  })

  it('says to each server what is for that', () => {
    const { nodes, options } = parseRedlockUrl('redlock://a,b/3?prefix=my%26app&maxTtl=5000&driver=redis')
    expect(nodes.map(({ url }) => parseUrl(url))).toMatchObject([
      { hosts: [{ host: 'a' }], database: 3, options: { prefix: 'my&app', driver: 'redis' } },
      { hosts: [{ host: 'b' }], database: 3, options: { prefix: 'my&app', driver: 'redis' } },
    ])
    expect(options).toEqual({ maxTtl: 5_000, labels: ['a:6379', 'b:6379'] })
    // As before the hosts, a plus is a plus; the option would say so, too.
    const [node] = parseRedlockUrl('redlock://a,b?prefix=a+b%20c').nodes
    expect(parseUrl(node?.url ?? '').options.prefix).toBe('a+b c')
  })

  it.each([
    ['redis://a,b', /must look like redlock/],
    ['redlock://', /must look like redlock/],
    ['redlock://u:secret@a,b?setup=soon', /setup that is neither now nor wait/],
    ['redlock://u:secret@a,b,A:6379', /names a:6379 twice/],
    ['redlock://u:secret@a,b?ttl=1', /option that no redlock URL has: ttl/],
  ])('%s is refused', (url, problem) => {
    expect(() => parseRedlockUrl(url)).toThrow(problem)
    expect(() => parseRedlockUrl(url)).not.toThrow(/secret@/)
  })
})

describe('the settings of a quorum', () => {
  const stores = [memoryStore(), memoryStore()]

  it('have a time for a vote that is far below the lease', () => {
    const { timeoutFor } = settingsOf(stores, {})
    expect([80, 1_000, 30_000].map(timeoutFor)).toEqual([40, 50, 150])
    const given = settingsOf(stores, { nodeTimeout: 70 })
    expect([100, 1_000, 30_000].map(given.timeoutFor)).toEqual([50, 70, 70])
  })

  it('name the stores, and go by what users say', () => {
    expect(settingsOf(stores, {})).toMatchObject({
      maxTtl: 30_000,
      probation: 30_000,
      labels: ['memory 1', 'memory 2'],
    })
    expect(settingsOf(stores, { labels: ['a', 'b'], maxTtl: 100, setUp: 'now' })).toMatchObject({
      maxTtl: 100,
      probation: 0,
      labels: ['a', 'b'],
    })
  })

  it.each([
    [{ maxTtl: 99 }, 'maxTtl'],
    [{ maxTtl: 86_400_001 }, 'maxTtl'],
    [{ nodeTimeout: 0 }, 'nodeTimeout'],
    [{ nodeTimeout: 10_001 }, 'nodeTimeout'],
    [{ setUp: 'soon' as 'now' }, 'setUp'],
    [{ labels: ['a'] }, 'labels'],
    [{ labels: ['a', 'b', 'c'] }, 'labels'],
  ])('refuse %o', (options, argument) => {
    expect(() => settingsOf(stores, options)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', argument }),
    )
  })

  it('let a vote take up to ten seconds, and leases a day', () => {
    expect(settingsOf(stores, { maxTtl: 86_400_000, nodeTimeout: 10_000 }).maxTtl).toBe(86_400_000)
    expect(settingsOf(stores, { maxTtl: 100, nodeTimeout: 1 }).timeoutFor(100)).toBe(1)
  })

  it('take two stores at least, 31 at most, and each once', () => {
    const many = (count: number): Store[] => Array.from({ length: count }, () => memoryStore())
    const [a, b] = many(2) as [Store, Store]
    checkNodes([a, b])
    checkNodes(many(31))
    expect(() => checkNodes([a])).toThrow(/use that store itself/)
    expect(() => checkNodes(many(32))).toThrow(/more than 31/)
    expect(() => checkNodes(a as never)).toThrow(/must be an array/)
    expect(() => checkNodes([a, b, b])).toThrow(/stores 2 and 3 are the same store/)
  })

  it('take no Redis that cannot vote, and say which it is', () => {
    const redis = (votes: Store['votes']): Store => ({ ...memoryStore(), kind: 'redis', votes }) as Store
    const { votes } = memoryNode()
    checkNodes([redis(votes), redis(votes)])
    expect(() => checkNodes([redis(votes), redis(undefined)])).toThrow(/store 2 cannot be one of a quorum/)
    expect(() => checkNodes([redis(undefined), memoryStore()])).toThrow(/store 1 cannot be one of a quorum/)
  })

  it('follow from the weakest of the stores', () => {
    const some = (more: object): Store => {
      const store = memoryStore()
      return { ...store, capabilities: { ...store.capabilities, ...more } } as Store
    }
    const all = [
      some({ reach: 'network', minTtl: 10, maxTtl: 50_000, earlyExpiry: 5 }),
      some({ reach: 'machine', minTtl: 20, maxTtl: 90_000, earlyExpiry: 2 }),
    ]
    expect(capabilitiesOf(all, 60_000)).toMatchObject({
      reach: 'machine',
      minTtl: 20,
      maxTtl: 50_000,
      earlyExpiry: 5,
    })
    expect(capabilitiesOf(all, 30_000).maxTtl).toBe(30_000)
  })
})
