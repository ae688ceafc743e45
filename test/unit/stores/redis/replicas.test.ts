import { describe, expect, it } from 'vitest'

import { redisStore } from 'holdfast/redis'
import type { RedisClient } from 'holdfast/redis'
import { CLAIM, FakeCluster } from './fake-cluster.ts'

/** As `createCluster` of node-redis: one connection for each primary, of which it speaks one by one. */
class Talkative extends FakeCluster {
  private readonly meanwhile: string

  /** `meanwhile`: what it says before the server has answered. */
  constructor(meanwhile: string) {
    super()
    this.meanwhile = meanwhile
  }

  nodeClient = (): object => ({
    sendCommand: async ([command]: string[]) => {
      await new Promise((resolve) => setImmediate(resolve))
      if (command !== 'WAIT') return '1794967306000000'
      this.emit(this.meanwhile, { host: '127.0.0.1', port: 2 })
      return 1
    },
  })
  sendCommand = (): Promise<never> => Promise.reject(new Error('not asked for'))
}

describe('a grant that replicas have confirmed, through a Cluster of node-redis', () => {
  it.each([
    ['is believed', 'node-ready', 'held'],
    ['is not believed', 'node-reconnecting', 'unknown'],
    ['is not believed', 'node-error', 'unknown'],
    ['is not believed', 'topology-change', 'unknown'],
  ])('%s if meanwhile a connection says %s', async (_, event, kind) => {
    const client = new Talkative(event) as unknown as RedisClient
    const store = redisStore(client, { replicas: 1 })
    expect(await store.claim(CLAIM, 1_000)).toMatchObject({ kind })
    await store.close()
  })
})
