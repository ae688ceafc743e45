import { describe, expect, it } from 'vitest'

import { Diary } from '../../../src/lab/live/diary.ts'
import { nemesis, settingsOf } from '../../../src/lab/live/index.ts'
import type { Scene } from '../../../src/lab/live/scene.ts'
import { sessionTimeoutFor } from '../../../src/stores/zookeeper/zk-session.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { Random } from '../../../src/testkit/random.ts'

/** A client with two connections, of which so many end when they are hurt. */
function strike(kind: string, ends: number): Promise<void> {
  let times = 0
  const hurt = (): void => void (times += 1)
  const way = {
    connections: 2,
    // Each time they are made again.
    get accepted() {
      return 2 + times * 2
    },
    get ended() {
      return times * ends
    },
    reset: hurt,
    cutReply: async () => hurt(),
    heal: () => undefined,
  }
  const scene = {
    diary: new Diary(),
    random: new Random(1),
    stage: { ttl: 100 },
    anyone: () => ({ label: 'client 1', way }),
  }
  const one = nemesis(kind)
  if (one === undefined) throw new Error(`there is no fault "${kind}"`)
  return one.strike(scene as unknown as Scene)
}

describe('Connections that are hurt and stay', () => {
  it.each([
    ['reset', 1, 'no connection was open that could be reset, or not all of them ended'],
    ['cut', 0, 'no request came that could be cut from its reply, or no connection ended with it'],
  ])('were no %s', { timeout: 20_000 }, async (kind, ends, why) => {
    await expect(strike(kind, ends)).rejects.toThrow(why)
  })

  it.each(['reset', 'cut'])('are none when they have ended by a %s', async (kind) => {
    await expect(strike(kind, 2)).resolves.toBeUndefined()
  })
})

describe('A client that is killed', () => {
  it('may keep what it held for as long as a ZooKeeper server lets it, with the ticks that servers are installed with', () => {
    const { capabilities } = zookeeperStore([{ host: 'localhost', port: 1 }])
    const { ttl, lateExpiry = 0 } = settingsOf('zookeeper', capabilities)
    const tick = 2000
    const session = Math.max(sessionTimeoutFor(ttl), 2 * tick)
    expect(ttl + lateExpiry).toBeGreaterThanOrEqual(Math.ceil(session / tick) * tick + tick)
  })
})
