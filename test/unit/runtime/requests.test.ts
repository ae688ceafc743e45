import { describe, expect, it } from 'vitest'

import type { Store } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'

const FIELDS: Readonly<Record<string, readonly string[]>> = {
  claim: ['capacity', 'id', 'name', 'owner', 'patience', 'tokens', 'ttl', 'weight', 'whenBusy'],
  renew: ['id', 'name', 'patience', 'tokens', 'ttl'],
  release: ['id', 'name', 'uncontended'],
  withdraw: ['id', 'name'],
  downgrade: ['id', 'name'],
  list: ['prefix'],
}

/** Everything that a store was given, by method. `silent`: it does not answer claims. */
function recording(env: VirtualEnv): {
  store: Store
  given: Map<string, object[]>
  state: { silent: boolean }
} {
  const inner = memoryStore({ now: () => env.instant() })
  const given = new Map<string, object[]>()
  const state = { silent: false }
  const keep = (method: string, value: unknown): void => {
    const objects = [value].flat().filter((one) => typeof one === 'object' && one !== null)
    if (method in FIELDS) given.set(method, [...(given.get(method) ?? []), ...(objects as object[])])
  }
  const store = new Proxy(inner, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      return (...args: unknown[]): unknown => {
        keep(String(key), args[0])
        if (key === 'release') keep('claim', args[1])
        if (key === 'claim' && state.silent) return { kind: 'unknown', cause: new Error('lost') }
        return Reflect.apply(value, target, args)
      }
    },
  })
  return { store, given, state }
}

describe('what the runtime hands to a store', () => {
  it('is plain, frozen, whole when it is spread, and can be sent as JSON', async () => {
    const env = new VirtualEnv()
    const { store, given, state } = recording(env)
    const [a, b] = [new Holdfast(store, { env, ttl: 1000 }), new Holdfast(store, { env, ttl: 1000 })]
    const lock = a.readWriteLock('c')
    const writer = await lock.write.acquire()
    await lock.downgrade(writer)
    const reader = await lock.read.acquire()
    const waits = b.mutex('x').acquire({ wait: Infinity })
    const first = await env.until(waits)
    const tasks = Array.from({ length: 3 }, () => b.mutex('x').run(() => env.sleep(5)))
    const rival = a.mutex('x').run(() => 1)
    await env.advance(900)
    await env.until(first.release())
    await env.until(Promise.all([...tasks, rival]))
    await a.list({ prefix: 'c' })
    state.silent = true
    await b
      .mutex('y')
      .tryAcquire()
      .catch(() => null)
    state.silent = false
    await env.until(Promise.all([writer.release(), reader.release()]))
    await env.until(Promise.all([a.close(), b.close()]))

    expect([...given.keys()].sort()).toEqual(Object.keys(FIELDS).sort())
    for (const [method, objects] of given) {
      for (const object of objects) {
        expect(Object.isFrozen(object)).toBe(true)
        expect(Object.getPrototypeOf(object)).toBe(Object.prototype)
        expect(Object.keys({ ...object }).sort()).toEqual(FIELDS[method])
        expect(JSON.parse(JSON.stringify(object))).toEqual(object)
      }
    }
  })
})
