import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { Chroot, ancestry, checkPath } from '../../../../src/stores/zookeeper/client/paths.ts'
import {
  Rotation,
  addressesFrom,
  checkAddress,
  parseConnectString,
} from '../../../../src/stores/zookeeper/client/servers.ts'
import { ZooKeeper } from '../../../../src/stores/zookeeper/client/index.ts'
import { zookeeperStore } from '../../../../src/stores/zookeeper/index.ts'
import { InvalidArgumentError } from '../../../../src/index.ts'
import { Watches } from '../../../../src/stores/zookeeper/client/watches.ts'
import { JuteReader, JuteWriter } from '../../../../src/stores/zookeeper/client/jute.ts'

describe('a connect string', () => {
  it('names servers, with the usual port unless told, IPv6 in brackets, and a chroot', () => {
    expect(parseConnectString('zk1:2182, [::1]:2183,10.0.0.3,[fe80::1%eth0]/apps/x/')).toEqual({
      servers: [
        { host: 'zk1', port: 2182 },
        { host: '::1', port: 2183 },
        { host: '10.0.0.3', port: 2181 },
        { host: 'fe80::1%eth0', port: 2181 },
      ],
      chroot: '/apps/x',
    })
  })

  it.each(['', 'a,,b', 'a:0', 'a:65536', '::1', 'a b', '[::1', 'host:port'])('refuses %j', (text) => {
    expect(() => parseConnectString(text)).toThrow('Not a server address')
  })

  it.each([
    { host: 'a', port: 0 },
    { host: 'a', port: 65_536 },
    { host: 'a', port: NaN },
    { host: 'a', port: 2181.5 },
    { host: '', port: 2181 },
    { host: undefined as unknown as string, port: 2181 },
    { host: 'a', port: '2181' as unknown as number },
  ])('is not made of $host and $port: a dial in the middle of a failover would throw', (address) => {
    const servers = [{ host: '127.0.0.1', port: 1 }, address]
    expect(() => checkAddress(address)).toThrow('Not a server address')
    expect(() => zookeeperStore(servers)).toThrow(InvalidArgumentError)
    expect(() => new ZooKeeper(servers)).toThrow('Not a server address')
  })

  it('has another address of a name first with every round', async () => {
    const addresses = ['10.0.0.1', '10.0.0.2', '::1'].map((address) => ({ address, family: 4 }))
    const rotation = new Rotation([{ host: 'zk', port: 1 }], () => 0)
    const asked = (all: boolean): Promise<unknown> =>
      new Promise((resolve) => {
        const lookup = addressesFrom(rotation.round, (_, __, done) => done(null, addresses))
        lookup('zk', { all }, (_, address) => resolve(address))
        rotation.take()
      })
    expect(await asked(false)).toBe('10.0.0.1')
    expect(await asked(false)).toBe('10.0.0.2')
    expect(await asked(true)).toEqual([addresses[2], addresses[0], addresses[1]])
    expect(await asked(false)).toBe('10.0.0.1')
    const failed = addressesFrom(0, (_, __, done) => done(new Error('no such name'), []))
    const error = await new Promise((resolve) => failed('zk', {}, resolve))
    expect(error).toMatchObject({ message: 'no such name' })
  })

  it('has another address first with every round also where the name server changes their order', async () => {
    const addresses = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address) => ({ address, family: 4 }))
    const first = (round: number, from: number): Promise<unknown> =>
      new Promise((resolve) => {
        const answer = [...addresses.slice(from), ...addresses.slice(0, from)]
        addressesFrom(round, (_, __, done) => done(null, answer))('zk', {}, (_, address) => resolve(address))
      })
    const asked = await Promise.all([first(0, 0), first(1, 2), first(2, 1)])
    expect(new Set(asked).size).toBe(3)
  })

  it('is tried in a random order, each server once before any comes again', () => {
    const servers = Array.from({ length: 5 }, (_, index) => ({ host: `h${index}`, port: 1 }))
    const firsts = new Set<string>()
    for (let run = 0; run < 200; run++) {
      const rotation = new Rotation(servers)
      const round = Array.from({ length: 5 }, () => rotation.take().host)
      expect(new Set(round).size).toBe(5)
      expect(rotation.take().host).toBe(round[0])
      firsts.add(round[0] as string)
    }
    expect(firsts.size).toBe(5)
  })
})

describe('a path', () => {
  it.each(['/', '/a', '/a.b/..c/...', '/ключ 鍵', '/a b'])('may be %j', (path) => {
    expect(() => checkPath(path)).not.toThrow()
  })

  it.each([
    '',
    'a',
    '/a/',
    '//',
    '/a//b',
    '/.',
    '/a/../b',
    '/a/.',
    '/a\u0000',
    '/\u001f',
    '/\u0085',
    '/🔑',
    '/\uffff',
  ])('may not be %j', (path) => {
    expect(() => checkPath(path)).toThrow('Path')
  })

  it('may end with a slash if the server appends a number', () => {
    expect(() => checkPath('/a/', true)).not.toThrow()
  })

  it('lies below the chroot at the server, and comes back without it', () => {
    const chroot = new Chroot('/apps/x')
    expect(['/', '/a/b'].map((path) => chroot.full(path))).toEqual(['/apps/x', '/apps/x/a/b'])
    expect(['/apps/x', '/apps/x/a', '/apps/xy'].map((path) => chroot.local(path))).toEqual([
      '/',
      '/a',
      '/apps/xy',
    ])
    expect(new Chroot('/').full('/a')).toBe('/a')
    expect(ancestry('/a/b/c')).toEqual(['/a', '/a/b', '/a/b/c'])
  })
})

describe('the list of watches', () => {
  it('calls those whom an event concerns, once, and persistent ones every time', () => {
    const watches = new Watches()
    const calls: string[] = []
    const note = (text: string) => (): void => void calls.push(text)
    watches.add('data', '/a', note('data'))
    watches.add('exists', '/a', note('exists'))
    watches.add('children', '/a', note('children'))
    watches.add('persistent', '/a', note('persistent'))
    watches.add('recursive', '/', note('recursive'))
    const fire = (type: 'deleted' | 'changed' | 'children', path = '/a'): string[] => {
      calls.length = 0
      for (const watcher of watches.fired({ type, path })) watcher({ type, path })
      return [...calls].sort()
    }
    expect(fire('children')).toEqual(['children', 'persistent'])
    expect(fire('changed', '/a/b')).toEqual(['recursive'])
    expect(fire('deleted')).toEqual(['data', 'exists', 'persistent', 'recursive'])
    expect(fire('deleted')).toEqual(['persistent', 'recursive'])
  })

  it('is restored in messages that a server takes, with every path once and of its kind', () => {
    const paths = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 400 }), { maxLength: 2000 })
    const limit = fc.option(fc.integer({ min: 1300, max: 200_000 }), { nil: undefined })
    fc.assert(
      fc.property(paths, paths, fc.boolean(), limit, (data, children, lasting, most) => {
        const watches = new Watches()
        for (const path of data) watches.add('data', path, () => undefined)
        for (const path of children) watches.add('children', path, () => undefined)
        if (lasting) watches.add('persistent', '/p', () => undefined)
        const seen: Record<string, string[]> = { data: [], children: [], persistent: [] }
        for (const message of watches.restore(7n, most)) {
          const writer = new JuteWriter()
          writer.begin()
          // The number of the request and its kind.
          writer.long(0n)
          message.write(writer)
          expect(writer.end()).toBeLessThanOrEqual(Math.min(most ?? Infinity, 128 * 1024))
          const reader = new JuteReader(writer.take().subarray(12))
          expect(reader.long()).toBe(7n)
          seen['data']?.push(...reader.strings())
          expect(reader.strings()).toEqual([])
          seen['children']?.push(...reader.strings())
          if (message.opcode === 105) seen['persistent']?.push(...reader.strings(), ...reader.strings())
          expect(reader.remaining).toBe(0)
        }
        expect(seen).toEqual({ data, children, persistent: lasting ? ['/p'] : [] })
      }),
      { numRuns: 30 },
    )
  })
})
