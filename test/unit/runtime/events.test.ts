import { subscribe, unsubscribe } from 'node:diagnostics_channel'

import { describe, expect, it } from 'vitest'

import { Holdfast } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { world } from './far-store.ts'

const KINDS = ['waiting', 'acquired', 'renewed', 'at-risk', 'lost', 'released']

async function recorded(body: () => Promise<void>): Promise<[string, Record<string, unknown>][]> {
  const seen: [string, Record<string, unknown>][] = []
  const listeners = KINDS.map((kind) => {
    const listener = (message: unknown): void => void seen.push([kind, message as Record<string, unknown>])
    subscribe(`holdfast:${kind}`, listener)
    return () => unsubscribe(`holdfast:${kind}`, listener)
  })
  try {
    await body()
  } finally {
    for (const stop of listeners) stop()
  }
  return seen
}

describe('events', () => {
  it('tell the life of a lease with its times', async () => {
    const { env, process } = world()
    const [a, b] = [process({ ttl: 900 }), process({ ttl: 900 })]
    const seen = await recorded(async () => {
      const first = await env.until(a.holdfast.mutex('x').acquire())
      const second = b.holdfast.mutex('x').acquire()
      await env.advance(200)
      await env.until(first.release())
      await env.until((await env.until(second)).release())
    })
    const kinds = seen.map(([kind]) => kind)
    expect(kinds.filter((kind) => kind !== 'renewed')).toEqual([
      'waiting',
      'acquired',
      'waiting',
      'released',
      'acquired',
      'released',
    ])
    expect(seen[3]?.[1]).toMatchObject({ name: 'x', store: 'far', held: 200 })
    expect(seen[4]?.[1]).toMatchObject({ name: 'x', store: 'far', waited: 200 })
  })

  it.each([
    ['a maxHold that is over', ['acquired', 'lost']],
    ['a release', ['acquired', 'released']],
  ])('tell of %s once, also if whoever hears of it closes the Holdfast at once', async (what, kinds) => {
    const { env, process } = world()
    const { holdfast } = process()
    const close = (): void => void holdfast.close({ drain: 0 })
    const listening = kinds.slice(1).map((kind) => `holdfast:${kind}`)
    for (const channel of listening) subscribe(channel, close)
    const seen = await recorded(async () => {
      const lease = await env.until(holdfast.mutex('x').acquire({ maxHold: 1000 }))
      await (what === 'a release' ? env.until(lease.release()) : env.advance(1500))
      await env.until(holdfast.close())
    })
    for (const channel of listening) unsubscribe(channel, close)
    expect(seen.map(([kind]) => kind).filter((kind) => kind !== 'waiting')).toEqual(kinds)
  })

  it('tell of no wait where the store answers at once', async () => {
    const holdfast = new Holdfast(memoryStore())
    const seen = await recorded(async () => {
      const { read, write } = holdfast.readWriteLock('x')
      for (const lock of [holdfast.mutex('m'), holdfast.semaphore('s', 2), write, read])
        await (await lock.acquire()).release()
    })
    expect(new Set(seen.map(([kind]) => kind))).toEqual(new Set(['acquired', 'released']))
  })

  it('warn of a lease at risk before they tell that it is lost', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 900 })
    const seen = await recorded(async () => {
      await env.until(holdfast.mutex('x').acquire())
      await env.advance(350)
      store.lose('any', 'request', Infinity)
      await env.advance(2000)
    })
    const kinds = seen.map(([kind]) => kind)
    expect(kinds).toContain('renewed')
    expect(kinds.indexOf('at-risk')).toBeGreaterThan(0)
    expect(kinds.indexOf('lost')).toBeGreaterThan(kinds.indexOf('at-risk'))
    expect(seen.find(([kind]) => kind === 'at-risk')?.[1].remaining).toBeGreaterThan(0)
  })

  it('do not call a lease renewed whose renewal was confirmed after its end', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 900 })
    const seen = await recorded(async () => {
      await env.until(holdfast.mutex('x').acquire())
      store.back = 100
      await env.advance(310)
      env.stall(800)
      await env.advance(100)
    })
    expect(seen.map(([kind]) => kind)).toEqual(['waiting', 'acquired', 'lost'])
  })

  it('may lead to a release: the lock is given up once', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 900, requestTimeout: 100 })
    const lease = await env.until(holdfast.mutex('x').acquire())
    store.lose('renew', 'request', Infinity)
    const released: Promise<string>[] = []
    const giveUp = (): void => void released.push(lease.release())
    subscribe('holdfast:at-risk', giveUp)
    await env.advance(800)
    unsubscribe('holdfast:at-risk', giveUp)
    expect(await env.until(Promise.all(released))).toEqual(['released'])
    expect(store.count('release') + store.count('withdraw')).toBe(1)
  })

  it('of a release may lead to another call of it, which answers the same', async () => {
    const { env, process } = world()
    const { holdfast } = process()
    const lease = await env.until(holdfast.mutex('x').acquire())
    const answers: unknown[] = []
    const again = (): void => void lease.release().then((answer) => answers.push(answer))
    subscribe('holdfast:released', again)
    try {
      answers.push(await env.until(lease.release()))
    } finally {
      unsubscribe('holdfast:released', again)
    }
    await env.settle()
    expect(answers).toEqual(['released', 'released'])
  })

  it('never show the id of a claim', async () => {
    const { env, process, server } = world()
    const { holdfast } = process({ ttl: 900 })
    let id = ''
    const seen = await recorded(async () => {
      const lease = await env.until(holdfast.mutex('x').acquire())
      const info = await server.inspect('x', 100)
      id = 'kind' in info ? '' : (info.holders[0]?.id ?? '')
      await env.advance(1000)
      await env.until(lease.release())
    })
    expect(id).toMatch(/\./)
    const text = JSON.stringify(seen, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value))
    expect(text).not.toContain(id.split('.')[0])
    expect(JSON.stringify(await env.until(holdfast.inspect('x')))).not.toContain(id.split('.')[0])
  })
})
