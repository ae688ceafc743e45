import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

import { describe, expect, it } from 'vitest'

import { followSentinels, knowSentinels } from '../../../../src/stores/redis/client/ioredis-sentinels.ts'
import type { IoredisNode } from '../../../../src/stores/redis/client/ioredis.ts'
import { Sentinels } from '../../../../src/stores/redis/client/sentinels.ts'
import type { SentinelClient } from '../../../../src/stores/redis/client/sentinels.ts'

/** A sentinel that knows one primary, and can announce another one. */
class Sentinel extends EventEmitter implements SentinelClient {
  isOpen = true
  isReady = true
  private readonly group: Group

  constructor(group: Group) {
    super()
    this.group = group
  }
  connect(): Promise<void> {
    return Promise.resolve()
  }
  sendCommand([, what]: string[]): Promise<unknown> {
    return Promise.resolve(what === 'SENTINELS' ? [] : this.group.at.split(' '))
  }
  subscribe(_channel: string | readonly string[], listener: (text: string, from: string) => void) {
    this.group.tell = (to) => listener(`m 10.0.0.1 6379 ${to}`, '+switch-master')
    return Promise.resolve()
  }
  unsubscribe(): Promise<void> {
    return Promise.resolve()
  }
  destroy(): void {}
}

interface Group {
  at: string
  tell?: (to: string) => void
}

/** A client of ioredis as far as it is looked at, that stays where it is whatever it is told. */
function follow(remoteAddress: string, at: string) {
  const group: Group = { at }
  const sentinels = new Sentinels([{ host: 's', port: 26_379 }], 'm', () => new Sentinel(group))
  const client = Object.assign(new EventEmitter(), {
    status: 'ready',
    stream: { remoteAddress, remotePort: 6379 },
  })
  let left = 0
  followSentinels(knowSentinels(client, sentinels) as unknown as IoredisNode, () => left++)
  client.emit('ready')
  return {
    group,
    ready: () => client.emit('ready'),
    left: () => left,
    end: () => client.emit('end'),
  }
}

describe('a connection of ioredis to a primary that sentinels call by a name', () => {
  it.each([
    ['127.0.0.1', 'localhost 6379', 0],
    ['::ffff:127.0.0.1', 'localhost 6379', 0],
    ['127.0.0.2', 'localhost 6379', 1],
    ['127.0.0.1', 'localhost 6380', 1],
    ['127.0.0.1', '127.0.0.1 6379', 0],
    ['127.0.0.2', '127.0.0.1 6379', 1],
    // Nobody knows the name now: that says nothing.
    ['127.0.0.1', 'nowhere.invalid 6379', 0],
  ])('at %s, where they say %s, is left %i times', async (remote, at, times) => {
    const { left, end } = follow(remote, at)
    if (times === 0) await sleep(70)
    await expect.poll(left, { interval: 5 }).toBe(times)
    end()
  })

  it('is left when they announce another one with the same port', async () => {
    const { group, left, end } = follow('127.0.0.1', 'localhost 6379')
    await expect.poll(() => group.tell !== undefined).toBe(true)
    group.tell?.('nowhere.invalid 6379')
    await expect.poll(left, { interval: 5 }).toBe(1)
    end()
  })

  it('is not left for ever for a name that leads somewhere else each time', async () => {
    const { ready, left, end } = follow('127.0.0.2', 'localhost 6379')
    for (let times = 1; times <= 10; times++) {
      await expect.poll(left, { interval: 5 }).toBe(times)
      ready()
    }
    await sleep(70)
    expect(left()).toBe(10)
    end()
  })
})
