import { EventEmitter } from 'node:events'

import { afterEach, beforeEach, expect, it, vi } from 'vitest'

import type { SentinelClient } from '../../../../src/stores/redis/client/sentinels.ts'

const OTHER = { ip: '10.0.0.2', port: '26379', flags: 'sentinel' }

/** What the sentinel that the URL names says of the others. */
let others: object[] = []

class Sentinel extends EventEmitter implements SentinelClient {
  isOpen = true
  isReady = true
  private readonly up: boolean

  constructor(up: boolean) {
    super()
    this.up = up
  }
  connect(): Promise<void> {
    return this.up ? Promise.resolve() : Promise.reject(new Error('ECONNREFUSED'))
  }
  sendCommand([, what]: string[]): Promise<unknown> {
    return Promise.resolve(what === 'SENTINELS' ? others : ['10.0.0.9', '6379'])
  }
  subscribe(): Promise<void> {
    return Promise.resolve()
  }
  unsubscribe(): Promise<void> {
    return Promise.resolve()
  }
  destroy(): void {}
}

beforeEach(() => {
  vi.resetModules()
  vi.useFakeTimers()
})
afterEach(() => vi.useRealTimers())

it('forgets a sentinel that is gone, unless the URL names it, until another one speaks of it again', async () => {
  // The module takes its timers when it is loaded.
  const { Sentinels } = await import('../../../../src/stores/redis/client/sentinels.ts')
  const tried: string[] = []
  const triedSince = async (ms: number): Promise<ReadonlySet<string>> => {
    tried.length = 0
    await vi.advanceTimersByTimeAsync(ms)
    return new Set(tried)
  }
  const up = new Set(['named'])
  const hosts = ['named', 'also-named'].map((host) => ({ host, port: 26_379 }))
  const sentinels = new Sentinels(hosts, 'm', ({ host }) => {
    tried.push(host)
    return new Sentinel(up.has(host))
  })
  others = [OTHER]
  sentinels.listen({ moved: () => {}, listening: () => {} })
  await sentinels.primaries()
  expect(await triedSince(10_000)).toEqual(new Set(['also-named', OTHER.ip]))
  others = []
  await triedSince(3_700_000)
  expect(await triedSince(10_000)).toEqual(new Set(['also-named']))
  tried.length = 0
  await sentinels.primaries()
  expect(tried).not.toContain(OTHER.ip)

  others = [OTHER]
  await sentinels.primaries()
  expect(await triedSince(10_000)).toEqual(new Set(['also-named', OTHER.ip]))
  sentinels.close()
  expect(await triedSince(10_000)).toEqual(new Set())
})
