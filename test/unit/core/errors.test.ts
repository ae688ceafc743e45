import { readFileSync } from 'node:fs'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'

import { describe, expect, it } from 'vitest'

import * as errors from '../../../src/core/errors.ts'

const documented = readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8')

type ErrorClass = new (message: string, details: object) => errors.HoldfastError

const classes = Object.entries(errors)
  .filter(([name]) => name !== 'HoldfastError')
  .map(([name, made]) => [name, made as unknown as ErrorClass] as const)

const DETAILS = {
  lock: 'x',
  store: 'memory',
  waited: 1,
  token: 1n,
  argument: 'a',
  expected: 1,
  actual: 2,
  nodes: [],
  method: 'claim',
}

const make = (made: ErrorClass): errors.HoldfastError => new made('message', DETAILS)

describe('errors', () => {
  it('have no field for what nobody said', () => {
    const error = new errors.ClosedError('message')
    expect(Object.keys(error).sort()).toEqual(['code', 'name'])
    const told = new errors.ClosedError('message', { lock: 'x', store: 'memory' })
    expect(Object.keys(told).sort()).toEqual(['code', 'lock', 'name', 'store'])
  })

  it('are documented, each with its code, and nothing else is', () => {
    const inCode = classes.map(([name, made]) => `${make(made).code} ${name}`).sort()
    const inDocs = [...documented.matchAll(/^## `(\w+)` \(`(\w+)`\)$/gm)].map(
      ([, code, name]) => `${code} ${name}`,
    )
    expect(inDocs.sort()).toEqual(inCode)
  })

  it.each(classes)('%s is told apart from all others', (name, made) => {
    const error = make(made)
    expect(error.name).toBe(name)
    expect(error).toBeInstanceOf(errors.HoldfastError)
    expect(error).toBeInstanceOf(Error)
    for (const [other, otherClass] of classes) expect(error instanceof otherClass).toBe(other === name)
  })

  it('are recognised across two copies of the package', async () => {
    // A query makes the module loader take it for another file.
    const copy = (await import(`${'../../../src/core/errors.ts'}?copy`)) as typeof errors
    expect(copy.LockTimeoutError).not.toBe(errors.LockTimeoutError)
    const error = new copy.LockTimeoutError('message', { waited: 1 })
    expect(error).toBeInstanceOf(errors.LockTimeoutError)
    expect(error).toBeInstanceOf(errors.HoldfastError)
    expect(error).not.toBeInstanceOf(errors.LockLostError)
  })

  it('can be derived from, and the derived class is a narrower one', () => {
    class MyTimeout extends errors.LockTimeoutError {}
    expect(new MyTimeout('message', { waited: 1 })).toBeInstanceOf(errors.LockTimeoutError)
    expect(new errors.LockTimeoutError('message', { waited: 1 })).not.toBeInstanceOf(MyTimeout)
  })

  it('keep their cause and show plain facts only', () => {
    const cause = new Error('why')
    const error = new errors.StoreUnavailableError('message', { cause, lock: 'x', store: 'redis' })
    expect(error.cause).toBe(cause)
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      code: 'STORE_UNAVAILABLE',
      lock: 'x',
      store: 'redis',
      name: 'StoreUnavailableError',
      message: 'message',
      cause: { name: 'Error', message: 'why' },
    })
  })

  it.each(classes)('%s comes through a thread: its class, its code, its fields', (name, made) => {
    const { port1, port2 } = new MessageChannel()
    const cause = new errors.LockLostError('deeper', { token: 9n, cause: new TypeError('deepest') })
    const error = new made('message', { ...DETAILS, cause })
    port1.postMessage(error.toJSON())
    const received = errors.HoldfastError.from(receiveMessageOnPort(port2)?.message)
    port1.close()
    expect(received).toBeInstanceOf(made)
    expect(Object.entries(received)).toEqual(Object.entries(error))
    expect([received.name, received.message]).toEqual([name, 'message'])
    expect(received.cause).toMatchObject({ code: 'LOCK_LOST', token: 9n, message: 'deeper' })
    expect((received.cause as Error).cause).toMatchObject({ name: 'TypeError', message: 'deepest' })
    const written = errors.HoldfastError.from(JSON.parse(JSON.stringify(error)))
    expect(Object.entries(written)).toEqual(Object.entries(error))
  })

  it('have no field that nobody set', () => {
    const details = { nodes: [], needed: 1, waited: 1, token: 1n, expected: 1, actual: 2, argument: 'a' }
    for (const made of Object.values(errors)) {
      if (made === errors.HoldfastError) continue
      const Made = made as unknown as new (message: string, details: object) => errors.HoldfastError
      const error = new Made('x', { ...details, method: 'm', table: 't', attempts: 1 })
      expect(Object.values(error)).not.toContain(undefined)
    }
  })

  it('are not made of what was none of ours', () => {
    for (const wrong of [null, 1, {}, new Error('x'), { code: 'ENOENT', message: 'x' }])
      expect(() => errors.HoldfastError.from(wrong)).toThrow(errors.InvalidArgumentError)
    const error = new errors.ClosedError('x')
    expect(errors.HoldfastError.from(error)).toBe(error)
  })
})
