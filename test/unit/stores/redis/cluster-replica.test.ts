import { describe, expect, it } from 'vitest'

import { redisStore } from 'holdfast/redis'
import type { RedisClient } from 'holdfast/redis'
import { CLAIM, FakeCluster } from './fake-cluster.ts'

/** As `createCluster` of node-redis: it leads to a replica that runs scripts, until a write is sent on by that. */
class ReplicaFirst extends FakeCluster {
  readonly sent: string[] = []
  private knows = false
  private readonly refusal: string
  private readonly learns: boolean

  constructor(refusal: string, learns: boolean) {
    super()
    this.refusal = refusal
    this.learns = learns
  }

  sendCommand = (_key: unknown, _isReadonly: boolean, [command = '']: string[]): Promise<unknown> => {
    this.sent.push(command)
    if (command === 'HDEL') this.knows = this.learns
    if (command === 'HDEL') return Promise.resolve(0)
    if (!this.knows) return Promise.reject(new Error(this.refusal))
    return Promise.resolve(command === 'WAIT' ? 1 : '1794967306000000')
  }
  nodeClient = (): object => ({ sendCommand: (args: string[]) => this.sendCommand('', false, args) })
}

const REFUSALS = [
  "READONLY You can't write against a read only replica. script: 6d29, on @user_script:27.",
  'ERR Script attempted to access a non local key in a cluster node script: 6d29, on @user_script:27.',
]

/** A connection that was made to read from a replica (`useReplicas`) is used for scripts when that is promoted, and stays. */
describe.each(REFUSALS)('a script that a replica of a Cluster has run: %s', (refusal) => {
  it.each([0, 1])('is sent to where its slot is, with %s replicas', async (replicas) => {
    const client = new ReplicaFirst(refusal, true)
    const store = redisStore(client as unknown as RedisClient, { replicas })
    expect(await store.claim(CLAIM, 1_000)).toMatchObject({ kind: 'held' })
    await store.close()
  })

  it('is sent a second time only', async () => {
    const client = new ReplicaFirst(refusal, false)
    const store = redisStore(client as unknown as RedisClient)
    expect(await store.claim(CLAIM, 1_000)).toMatchObject({ kind: 'unknown' })
    expect(client.sent).toEqual(['EVALSHA', 'HDEL', 'EVALSHA'])
    await store.close()
  })
})
