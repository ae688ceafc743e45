import fc from 'fast-check'
import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'

import { redisStore } from 'holdfast/redis'

import { available, redisCluster } from '../../../scripts/services.mjs'
import { headerPattern, keysOf, nameOfHeader } from '../../../src/stores/redis/keys.ts'
import { slotOf } from '../../../src/stores/redis/slots.ts'

/** Names that try to look like keys, tags and codes. */
const names = fc.oneof(
  fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' }),
  fc
    .array(fc.constantFrom('{', '}', '{}', '%', '%7B', ':i', ':r', 'a', ' ', '*', '[', '\\'), {
      minLength: 1,
    })
    .map((parts) => parts.join('')),
)

describe('the keys of a name', () => {
  it('share a slot, whatever the name', () => {
    fc.assert(
      fc.property(names, (name) => {
        const slots = keysOf('hf', name).map(slotOf)
        expect(new Set(slots).size).toBe(1)
      }),
    )
  })

  it('are nobody else’s', () => {
    fc.assert(
      fc.property(names, names, (one, other) => {
        fc.pre(one !== other)
        const shared = new Set([...keysOf('hf', one), ...keysOf('hf', other)])
        expect(shared.size).toBe(6)
      }),
    )
  })

  it('tell the name again, also behind a prefix that a driver puts before them', () => {
    fc.assert(
      fc.property(names, (name) => {
        const [header, index, records] = keysOf('hf', name)
        expect(nameOfHeader(header)).toBe(name)
        expect(nameOfHeader(`{app}:${header}`)).toBe(name)
        expect([nameOfHeader(index), nameOfHeader(records)]).toEqual([undefined, undefined])
      }),
    )
  })

  it('are matched by a pattern that takes no character of the name for a sign', () => {
    expect(headerPattern('hf', 'a*b[c]?')).toBe(String.raw`hf:{a\*b\[c\]\?*}`)
  })
})

describe.skipIf(!available('redis-cluster'))('the slot of a key', () => {
  it('is the one that a server computes', async () => {
    const cluster = await redisCluster({ primaries: 3 })
    const client = new Redis(cluster.nodes[0]?.port ?? 0)
    for (const key of ['a', 'hf:{train:G101}', 'hf:{}', 'hf:{}:i', 'x{y}z', '{a}{b}', 'ä€😀', 'no{end']) {
      expect(slotOf(key)).toBe(await client.cluster('KEYSLOT', key))
    }
    client.disconnect()
    await cluster.stop()
  })
})

describe('a prefix that ends in :v', () => {
  /** Those of a Redlock store with the prefix `hf` are `hf:v:{name}`. */
  it.each([
    ['hf:v', undefined],
    ['v', 'hf:'],
    [':v', 'hf'],
  ])('is refused: %s behind %s', (prefix, keyPrefix) => {
    const client = new Redis({ lazyConnect: true, ...(keyPrefix === undefined ? {} : { keyPrefix }) })
    expect(() => redisStore(client, { prefix })).toThrow(/must not end in `:v`/)
    client.disconnect()
  })

  it.each([
    ['v', undefined],
    ['hf:v1', undefined],
    ['hf', 'a:v:'],
  ])('is not one: %s behind %s', (prefix, keyPrefix) => {
    const client = new Redis({ lazyConnect: true, ...(keyPrefix === undefined ? {} : { keyPrefix }) })
    expect(redisStore(client, { prefix }).kind).toBe('redis')
    client.disconnect()
  })
})
