import { expect, it, vi } from 'vitest'

import { Holdfast } from '../../../src/index.ts'
import { ZooKeeper } from '../../../src/stores/zookeeper/client/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'

const claim = {
  name: 'a',
  id: 's.1',
  weight: 1,
  capacity: 1,
  ttl: 10_000,
  patience: 10_000,
  tokens: 1,
  owner: 'o',
} as const

it('says so soon, and why, when no server of a new session can be reached', async () => {
  const store = zookeeperStore('127.0.0.1:1,127.0.0.1:2')
  const began = performance.now()
  const answer = await store.claim({ ...claim, whenBusy: 'try' }, 20_000)
  expect(performance.now() - began).toBeLessThan(5000)
  expect(answer).toMatchObject({ kind: 'unknown' })
  expect(String((answer as { cause: Error }).cause)).toMatch(/127\.0\.0\.1:[12].*ECONNREFUSED/)
  expect(await store.list({}, 20_000)).toMatchObject({ kind: 'unknown' })
  expect(performance.now() - began).toBeLessThan(10_000)
  await store.close()
})

it('goes on asking for whoever waits', async () => {
  const store = zookeeperStore('127.0.0.1:1')
  const holdfast = new Holdfast(store)
  const began = performance.now()
  await expect(holdfast.mutex('a').acquire({ wait: 700 })).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
  })
  expect(performance.now() - began).toBeGreaterThan(650)
  await holdfast.close({ timeout: 500 })
  await store.close()
})

it('leaves nothing with a user’s client, neither by asking in vain nor after its end', async () => {
  const zk = new ZooKeeper('127.0.0.1:1', { background: true })
  let listening = 0
  const onState = zk.onState.bind(zk)
  zk.onState = (listener) => {
    listening++
    const stop = onState(listener)
    return () => {
      listening--
      stop()
    }
  }
  const connected = vi.spyOn(zk, 'connected')
  const store = zookeeperStore(zk)
  for (let number = 0; number < 3; number++) {
    const request = { ...claim, id: `s.${number}`, whenBusy: 'try' } as const
    expect(await store.claim(request, 20)).toMatchObject({ kind: 'unknown' })
  }
  await vi.waitFor(() => expect(listening).toBe(1))
  // It cannot be taken back.
  expect(connected).not.toHaveBeenCalled()
  await store.close()
  expect(listening).toBe(0)
  await zk.close()
})

it('says that asking again cannot help when Node refuses the options for TLS', async () => {
  const store = zookeeperStore('127.0.0.1:1', { client: { tls: { cert: 'none', key: 'none' } } })
  expect(await store.claim({ ...claim, id: 's.tls', whenBusy: 'try' }, 1000)).toMatchObject({
    kind: 'unknown',
    retryable: false,
  })
  await store.close()
})
