import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, memcached } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { memcachedStore } from '../../../src/stores/memcached/index.ts'
import { keysFor, nonceOf, tombstoneOf } from '../../../src/stores/memcached/keys.ts'
import { command, keys, request, take, TIMEOUT_MS } from './kit.ts'

const HOSTILE = [
  'a b',
  'x\r\nflush_all\r\n',
  'x v\r\nms victim 1\r\nx\r\n',
  '\0',
  '\u0085',
  'ключ-鍵-🔑',
  'e\u0301',
  '\u00e9',
  ' ',
  'x'.repeat(140),
  'x'.repeat(141),
  'x'.repeat(512),
  `${'x'.repeat(511)}y`,
  '🔑'.repeat(128),
  'l:a',
  '__proto__',
  'a',
  'A',
]

describe('names and ids', () => {
  it('become keys that the wire takes, a different one for every name', () => {
    const places = keysFor('p'.repeat(100))
    const seen = new Set<string>()
    for (const name of HOSTILE) {
      const { lock, fence } = places.places(name)
      for (const key of [lock, fence]) {
        expect(key).toMatch(/^[!-~]+$/)
        expect(key.length).toBeLessThanOrEqual(250)
        seen.add(key)
      }
    }
    expect(seen.size).toBe(HOSTILE.length * 2)
    // A name that looks like the hash of another is not taken for it.
    const hashed = places.places('a b').lock.slice(102)
    expect(places.places(hashed).lock).not.toBe(places.places('a b').lock)
  })

  it.each(['', 'has space', 'x\r\n', 'ä', 'p'.repeat(101)])('refuse the prefix %j', (prefix) => {
    expect(() => keysFor(prefix)).toThrow('prefix must be')
  })

  it('become even numbers of 19 digits, a different one for every claim', () => {
    const ids = [
      's.0',
      's.00',
      's.1',
      's.01',
      's.zz',
      's.ZZ',
      's',
      's.',
      '',
      '.',
      't.1',
      '#12',
      's.-1',
      's.1 ',
      's.1.1',
    ]
    for (let number = 0; number < 20_000; number += 1) ids.push(`session.${number}`)
    for (let number = 0; number < 1000; number += 1) ids.push(`session.z${number}`)
    for (let number = 1e14; number < 1e17; number *= 10) ids.push(`session.${number}`)
    const nonces = ids.map(nonceOf)
    expect(new Set(nonces).size).toBe(ids.length)
    for (const nonce of nonces) {
      expect(nonce).toMatch(/^[5-8]\d{17}[02468]$/)
      expect(BigInt(tombstoneOf(nonce))).toBe(BigInt(nonce) + 1n)
    }
  })
})

describe.skipIf(!available('memcached'))('names on a real server', () => {
  let server: Server
  beforeAll(async () => void (server = await memcached()))
  afterAll(() => server.stop())

  it('are locks of their own, and none runs a command', async () => {
    await using a = closing(memcachedStore(server.url))
    await using b = closing(memcachedStore(server.url))
    const held = HOSTILE.map((name) => request(name))
    for (const one of held) await take(a.store, one)
    for (const { name, id } of held) {
      expect((await b.store.claim(request(name), TIMEOUT_MS)).kind).toBe('busy')
      const info = await b.store.inspect(name, TIMEOUT_MS)
      expect('kind' in info || [info.name, info.holders.map((holder) => holder.id)]).toEqual([name, [id]])
    }
    expect((await keys(server)).filter((key) => !key.startsWith('holdfast:'))).toEqual([])
    for (const one of held) {
      expect(await a.store.release(one, undefined, TIMEOUT_MS)).toEqual({ released: { kind: 'released' } })
    }
  })

  it('do not meet under another prefix', async () => {
    await using a = closing(memcachedStore(server.url, { prefix: 'one:' }))
    await using b = closing(memcachedStore(server.url, { prefix: 'two:' }))
    await take(a.store, request('same'))
    expect((await b.store.claim(request('same'), TIMEOUT_MS)).kind).toBe('held')
  })

  it('are not taken from another program that uses the key', async () => {
    await using a = closing(memcachedStore(server.url))
    await command(server, 'set holdfast:l:theirs 0 0 5\r\nhello')
    const answer = await a.store.claim(request('theirs'), TIMEOUT_MS)
    expect(answer).toMatchObject({ kind: 'unknown', retryable: false })
    expect(answer.kind === 'unknown' && String(answer.cause)).toContain('prefix')
  })
})

function closing<T extends { close(): unknown }>(store: T): { store: T } & AsyncDisposable {
  return { store, [Symbol.asyncDispose]: async () => void (await store.close()) }
}
