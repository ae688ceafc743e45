import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Console } from 'node:console'
import { Writable } from 'node:stream'
import { inspect } from 'node:util'

import { describe, expect, it } from 'vitest'

import * as root from '../../../src/index.ts'
import type { HoldfastError } from '../../../src/index.ts'
import { leader, leaderOf, once } from '../../../src/recipes/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { quorumStore } from '../../../src/stores/quorum/index.ts'
import { memoryNode } from '../../../src/stores/memory/index.ts'
import { world } from '../runtime/far-store.ts'

/** Every way in which things get into a log. */
const PRINTERS: Readonly<Record<string, (value: unknown) => string>> = {
  'JSON.stringify': (value) => JSON.stringify(value),
  'JSON.stringify of more': (value) => JSON.stringify({ message: 'seen', at: [value] }),
  'util.inspect': (value) => inspect(value, { showHidden: true, depth: Infinity }),
  'util.inspect of more': (value) => inspect({ message: 'seen', at: [value] }, { depth: 2 }),
  'console.log': (value) => {
    let text = ''
    const stdout = new Writable({
      write: (chunk, _, done) => {
        text += String(chunk)
        done()
      },
    })
    new Console(stdout).log('%s %o %O', value, value, value, value)
    return text
  },
  structuredClone: (value) => {
    try {
      return inspect(structuredClone(value), { depth: Infinity })
    } catch (error) {
      return String(error)
    }
  },
  'a template': (value) => `${value as string}`,
  // Loggers copy what an error has, and what its causes say.
  'a logger’s serializer': (value) => {
    const copy = (one: unknown): object =>
      one instanceof Error
        ? {
            ...Object.fromEntries(Object.entries(one)),
            type: one.name,
            message: one.message,
            stack: one.stack,
            cause: one.cause && copy(one.cause as Error),
          }
        : { value: one }
    return JSON.stringify({ err: copy(value) }, (_, each: unknown) =>
      typeof each === 'bigint' ? String(each) : each instanceof Error ? each.message : each,
    )
  },
}

type Everything = [label: string, value: unknown][]

/** One of everything that users get from us, in every state, and the secrets behind it. */
async function everything(): Promise<{ things: Everything; secrets: string[] }> {
  const w = world()
  const things: Everything = []
  const channels = ['waiting', 'acquired', 'renewed', 'downgraded', 'at-risk', 'lost', 'released']
  const heard = (event: unknown, name: string | symbol): number =>
    things.push([`event ${String(name)}`, event])
  for (const channel of channels) subscribe(`holdfast:${channel}`, heard)
  const { holdfast, store } = w.process({ ttl: 900 })
  const other = w.process()
  const until = <T>(promise: Promise<T>): Promise<T> => w.env.until(promise)

  const mutex = holdfast.mutex('mutex', { reentrant: true })
  const lock = holdfast.readWriteLock('rw')
  const semaphore = holdfast.semaphore('semaphore', 3)
  const set = holdfast.all(['p', 'q'])
  const striped = holdfast.striped('striped', 4)
  things.push(['Holdfast', holdfast], ['mutex', mutex], ['rw', lock], ['semaphore', semaphore])
  things.push(['set', set], ['striped', striped], ['stripe', striped.for('a')])

  const held = await until(mutex.acquire())
  const limited = await until(semaphore.acquire({ maxHold: 500, permits: 2 }))
  const leases = await until(set.acquire())
  const writer = await until(lock.write.acquire())
  await until(lock.downgrade(writer))
  const nested = await until(holdfast.mutex('outer', { reentrant: true }).run((lease) => [lease]))
  const kept = await until(lock.read.run(async (outer) => [outer, await lock.read.acquire()]))
  const released = await until(holdfast.mutex('released').acquire())
  await until(released.release())
  things.push(['held', held], ['limited', limited], ['leases', leases], ['downgraded', writer])
  things.push(['nested', nested], ['kept', kept], ['released', released])
  const waiting = other.holdfast.mutex('mutex').acquire({ wait: 5000 })
  things.push(['waiting', waiting])
  await w.env.advance(400)

  things.push(['inspect', await until(holdfast.inspect('mutex'))], ['list', await until(holdfast.list())])
  things.push(['leaderOf', await until(leaderOf(holdfast, 'mutex'))])
  const job = once(holdfast, 'job', { every: 60_000, run: () => 1, env: w.env })
  things.push(['once', job], ['tick', await until(job.tick())])
  const candidate = leader(holdfast, 'lead', {
    env: w.env,
    onElected: (term) => {
      things.push(['term', term])
    },
  })
  await w.env.advance(50)
  things.push(['candidate', candidate])
  await until(candidate.stop())

  const quorum = quorumStore([memoryNode(), memoryNode(), memoryNode()])
  things.push(['store', store], ['server', w.server], ['memory', memoryStore()], ['quorum', quorum])
  const ids: string[] = []
  for (const name of (await until(holdfast.list())).names) {
    const info = await w.server.inspect(name, 100)
    if (!('kind' in info)) ids.push(...[...info.holders, ...info.waiters].map(({ id }) => id))
  }

  store.lose('any', 'request', Infinity)
  await w.env.advance(2000)
  things.push(['lost', held], ['lost set', leases], ['reason', held.signal.reason])
  const failed: unknown = await until(
    holdfast
      .mutex('x')
      .run(() => 1, { wait: 100 })
      .catch((e: unknown) => e),
  )
  things.push(['failed', failed])
  store.heal()
  await until(holdfast.close())
  things.push(['closed', holdfast])
  for (const channel of channels) unsubscribe(`holdfast:${channel}`, heard)
  await until(other.holdfast.close())
  await waiting.catch(() => {})
  const sessions = new Set(ids.map((id) => id.split('.')[0] ?? id))
  return { things, secrets: [...sessions] }
}

/** What a driver's error may have on it. */
const driverError = (): Error =>
  Object.assign(new Error('refused', { cause: Object.assign(new Error('deeper'), { password: 'SECRET' }) }), {
    code: 'ECONNREFUSED',
    command: { name: 'evalsha', args: ['SECRET'] },
    client: { options: { password: 'SECRET' } },
  })

const errors = Object.entries(root)
  .filter(([name]) => name.endsWith('Error') && name !== 'HoldfastError')
  .map(([name, made]) => {
    const Made = made as unknown as new (message: string, details: object) => HoldfastError
    const outcome = { status: 'rejected', reason: new Error('mine') }
    const details = {
      lock: 'x',
      store: 'memory',
      waited: 1,
      token: 7n,
      argument: 'a',
      expected: 1,
      actual: 2,
    }
    return [name, new Made('what to do', { ...details, outcome, cause: driverError() })] as const
  })

describe('what users get from us', () => {
  it('can be printed in every way, and no secret is in it', async () => {
    const { things, secrets } = await everything()
    expect(secrets.length).toBeGreaterThan(1)
    for (const secret of secrets) expect(secret.length).toBeGreaterThan(15)
    for (const [label, value] of things) {
      for (const [way, print] of Object.entries(PRINTERS)) {
        // Test doubles hold what they hold; what is printed of ours inside them still counts below.
        if (label === 'store') continue
        const text = print(value) ?? ''
        for (const secret of secrets)
          expect(text.includes(secret), `${label} by ${way}: ${text.slice(0, 300)}`).toBe(false)
      }
    }
    expect(things.map(([label]) => label)).toEqual(
      expect.arrayContaining([
        'event holdfast:lost',
        'event holdfast:released',
        'event holdfast:acquired',
        'term',
      ]),
    )
  })

  it.each(errors)('prints without what its causes carry: %s', (name, error) => {
    for (const [way, print] of Object.entries(PRINTERS)) {
      // What copies a cause as it is: only the errors of a store have one that is not the user's own.
      if (way === 'a logger’s serializer' && name !== 'StoreUnavailableError') continue
      expect(`${way}: ${print(error)}`).not.toContain('SECRET')
    }
    expect(inspect(error)).toContain('refused')
    expect(inspect(error)).toContain('deeper')
    expect(inspect(error)).toContain(`code: '${error.code}'`)
  })

  it('keeps of a driver’s error its class, words and code', () => {
    class DriverError extends Error {}
    const cause = Object.assign(new DriverError('why'), { code: 'X', command: { args: ['SECRET'] } })
    const { cause: kept } = new root.StoreUnavailableError('message', { cause })
    expect(kept).toBeInstanceOf(DriverError)
    expect(kept).toMatchObject({ message: 'why', code: 'X', stack: cause.stack })
    expect(inspect(kept, { customInspect: false, showHidden: true, depth: Infinity })).not.toContain('SECRET')
    expect(Object.keys(kept as object)).toEqual(['code'])
  })

  it('keeps its stack also where that is made when it is read', () => {
    const cause = Object.assign(new Error('why'), { command: 'SECRET' })
    Object.defineProperty(cause, 'stack', { get: () => 'their stack', configurable: true })
    const { cause: kept } = new root.StoreUnavailableError('message', { cause })
    expect(kept).not.toBe(cause)
    expect((kept as Error).stack).toBe('their stack')
  })

  it('prints facts that help', async () => {
    const w = world()
    const { holdfast } = w.process({ owner: 'host:1' })
    const lease = await w.env.until(holdfast.mutex('x').acquire())
    const { token } = lease
    expect(JSON.parse(JSON.stringify(lease))).toMatchObject({ name: 'x', token: String(token), held: true })
    expect(inspect(lease)).toMatch(/^Lease \{ name: 'x', token: \d+n, held: true, remaining: \d+ \}$/)
    expect(inspect(holdfast)).toBe("Holdfast { store: 'far', owner: 'host:1', closed: false }")
    expect(inspect(holdfast.semaphore('s', 3))).toBe("Lock { name: 's', mode: 'permits', capacity: 3 }")
    expect(inspect([[[[lease]]]], { depth: 3 })).toContain('[Lease]')
    for (const depth of [null, undefined]) expect(inspect(lease, { depth })).toContain("Lease { name: 'x'")
    const info = await w.env.until(holdfast.inspect('x'))
    expect(JSON.parse(JSON.stringify(info))).toMatchObject({
      holders: [{ token: String(token), owner: 'host:1' }],
    })
    expect(info.holders[0]?.token).toBe(token)
  })
})
