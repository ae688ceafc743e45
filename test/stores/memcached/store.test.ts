import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer as createPlainServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'

import { available } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { memcached } from '../../../scripts/services/memcached.mjs'
import { Holdfast } from '../../../src/index.ts'
import { parseUrl } from '../../../src/stores/memcached/url.ts'
import { checkMemcached, memcachedStore, openMemcachedStore } from '../../../src/stores/memcached/index.ts'
import { nonceOf } from '../../../src/stores/memcached/keys.ts'
import { builds, command, keys, request, sleep, take, TIMEOUT_MS } from './kit.ts'

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one()
})

function open(url: string, options = {}): ReturnType<typeof memcachedStore> {
  const store = memcachedStore(url, options)
  undo.push(() => store.close())
  return store
}

async function start(args: readonly string[], build: { command?: string } = {}): Promise<Server> {
  const server = await memcached({ args, ...build })
  undo.push(() => server.stop())
  return server
}

describe.skipIf(!available('memcached')).each(builds)('a memcached store on $label', ({ command: path }) => {
  const build = path === undefined ? {} : { command: path }
  let server: Server
  beforeAll(async () => void (server = await memcached(build)))
  afterAll(() => server.stop())

  it('asks for whole seconds, rounded up, and three more', async () => {
    const store = open(server.url)
    for (const [ttl, seconds] of [
      [2000, 5],
      [2001, 6],
      [15_000, 18],
      [2 ** 31 - 1, 2_147_487],
    ] as const) {
      const wanted = request(`ttl-${ttl}`, { ttl })
      await take(store, wanted)
      const left = Number((await command(server, `mg holdfast:l:ttl-${ttl} t`)).slice(4))
      expect(left === seconds || left === seconds - 1).toBe(true)
      expect(seconds * 1000 - ttl).toBeLessThanOrEqual(store.capabilities.lateExpiry ?? 0)
    }
  })

  describe.each([
    ['another process', true],
    ['the same process', false],
  ])('a claim that is asked for once more, after its item is gone and %s held the lock', (_, elsewhere) => {
    it('has a larger token than that one had', async () => {
      const store = open(server.url)
      const other = elsewhere ? open(server.url) : store
      const name = `once-more-${elsewhere}`
      const wanted = request(name)
      const first = await take(store, wanted)
      // Nobody came in between: the same tokens, however often it is asked for.
      for (let times = 0; times < 3; times++) expect(await take(store, wanted)).toEqual(first)
      await command(server, `md holdfast:l:${name}`)
      const second = request(name)
      const { token } = await take(other, second)
      await other.release(second, undefined, TIMEOUT_MS)
      const again = await take(store, wanted)
      expect(again.token).toBeGreaterThan(token)
      expect((await take(store, wanted)).token).toBe(again.token)
    })
  })

  it('grants a claim that is asked for once more, also while the server moves its item about in its lists', async () => {
    const store = open(server.url)
    const wanted = request('moved-about')
    const answers: string[] = []
    // An item that was read twice is moved at the server's leisure, and cannot be changed in place until it was.
    for (const end = performance.now() + 4000; performance.now() < end; await sleep(250))
      answers.push((await store.claim(wanted, TIMEOUT_MS)).kind)
    expect(new Set(answers)).toEqual(new Set(['held']))
  })

  it('gives every claim its own ttl and its own tokens, whatever the last one on that name asked for', async () => {
    const store = open(server.url)
    let last = 0n
    for (const [ttl, tokens] of [
      // The shorter ttl after the longer: one that is too short would be noticed and mended.
      [20_000, 1],
      [10_000, 1],
      [10_000, 5],
      [20_000, 5],
    ] as const) {
      const wanted = request('in-turn', { ttl, tokens })
      const { token, count } = await take(store, wanted)
      expect([token > last, count]).toEqual([true, tokens])
      last = token + BigInt(count) - 1n
      const left = Number((await command(server, 'mg holdfast:l:in-turn t')).slice(4))
      expect(left === ttl / 1000 + 3 || left === ttl / 1000 + 2).toBe(true)
      await store.release(wanted, undefined, TIMEOUT_MS)
    }
  })

  it('releases its own lock also when its CAS value was changed, and nobody else’s', async () => {
    const store = open(server.url)
    const [mine, lost] = [request('touched'), request('replaced')]
    await take(store, mine)
    await take(store, lost)
    expect(await command(server, 'ma holdfast:l:touched D0')).toBe('HD')
    expect(await store.release(mine, undefined, TIMEOUT_MS)).toEqual({ released: { kind: 'released' } })
    expect(await command(server, 'mg holdfast:l:touched')).toBe('EN')
    const another = nonceOf('another.1')
    await command(server, `set holdfast:l:replaced 0 30 19\r\n${another}`)
    expect(await store.release(lost, undefined, TIMEOUT_MS)).toEqual({ released: { kind: 'not-held' } })
    expect(await command(server, 'mg holdfast:l:replaced s')).toBe('HD s19')
  })

  it('says nothing of a claim under another name', async () => {
    const store = open(server.url)
    const claim = request('one-name')
    await take(store, claim)
    const other = { ...claim, name: 'another-name' }
    expect(await store.renew([{ ...other, tokens: 0 }], TIMEOUT_MS)).toEqual([{ kind: 'lost' }])
    await take(store, claim)
    expect(await store.release(other, undefined, TIMEOUT_MS)).toEqual({ released: { kind: 'not-held' } })
    expect(await store.renew([{ ...claim, tokens: 0 }], TIMEOUT_MS)).toMatchObject([{ kind: 'renewed' }])
    expect(await store.release(claim, undefined, TIMEOUT_MS)).toEqual({ released: { kind: 'released' } })
  })

  it('refuses a ttl below two seconds, and everything that needs more than a mutex, by name', async () => {
    const store = open(server.url)
    const holdfast = new Holdfast(store)
    expect(() => holdfast.mutex('a', { ttl: 1999 })).toThrow('ttl must be between 2000')
    expect(() => holdfast.readWriteLock('a')).toThrow(/memcached store has no read-write locks.*redis/)
    expect(() => holdfast.semaphore('a', 2)).toThrow(/memcached store has no semaphores.*redis/)
    expect(await store.claim(request('a', { capacity: 2 }), TIMEOUT_MS)).toMatchObject({
      kind: 'unknown',
      retryable: false,
    })
    const listed = await store.list({}, TIMEOUT_MS)
    expect(listed).toMatchObject({ kind: 'unknown', retryable: false })
    expect('kind' in listed && String(listed.cause)).toContain('cannot say which keys it has')
    await expect(holdfast.list()).rejects.toMatchObject({ code: 'UNSUPPORTED' })
    await holdfast.close()
  })

  it('answers a claim whose reply is garbled, and goes on afterwards', async () => {
    let garbled = false
    const front = createPlainServer((socket) => {
      const back = connect(server.port, server.host)
      for (const end of [socket, back]) end.on('error', () => {})
      socket.pipe(back)
      socket.on('close', () => back.destroy())
      back.on('close', () => socket.destroy())
      back.on('data', (bytes) => {
        const text = bytes.toString('latin1')
        socket.write(garbled ? text.replace(/(VA 16[^\r]*\r\n)\d/, '$1x') : text, 'latin1')
      })
    })
    await new Promise<void>((resolve) => void front.listen(0, '127.0.0.1', resolve))
    const { port } = front.address() as AddressInfo
    const store = open(`memcached://127.0.0.1:${port}`)
    expect(await store.claim(request('clear'), TIMEOUT_MS)).toMatchObject({ kind: 'held' })
    garbled = true
    expect(await store.claim(request('garbled'), TIMEOUT_MS)).toMatchObject({ kind: 'unknown' })
    garbled = false
    expect(await store.claim(request('clear again'), TIMEOUT_MS)).toMatchObject({ kind: 'held' })
    await store.close()
    front.close()
  })

  it('lets an operator release a lock whose holder nobody can describe', async () => {
    const store = open(server.url)
    const wanted = request('nameless')
    await take(store, wanted)
    await store.inspect('nameless', TIMEOUT_MS)
    expect(await command(server, `md holdfast:d:${nonceOf(wanted.id)}`)).toBe('HD')
    const info = await store.inspect('nameless', TIMEOUT_MS)
    const [holder] = 'kind' in info ? [] : info.holders
    expect(holder).toMatchObject({ owner: 'unknown', weight: 1 })
    const { released } = await store.release(
      { name: 'nameless', id: holder?.id ?? '' },
      undefined,
      TIMEOUT_MS,
    )
    expect(released.kind).toBe('released')
    expect(await store.renew([wanted], TIMEOUT_MS)).toEqual([{ kind: 'lost' }])
  })

  it('tells a holder that others ask for its lock', async () => {
    const [a, b] = [open(server.url), open(server.url)]
    const wanted = request('wanted')
    await take(a, wanted)
    expect(await a.renew([{ ...wanted, tokens: 0 }], TIMEOUT_MS)).toEqual([
      { kind: 'renewed', contended: false },
    ])
    await b.claim(request('wanted'), TIMEOUT_MS)
    expect(await a.renew([{ ...wanted, tokens: 0 }], TIMEOUT_MS)).toEqual([
      { kind: 'renewed', contended: true },
    ])
    expect(await a.renew([{ ...wanted, tokens: 5 }], TIMEOUT_MS)).toMatchObject([
      { kind: 'held', contended: true },
    ])
    expect(await a.renew([{ ...wanted, tokens: 5 }], TIMEOUT_MS)).toMatchObject([
      { kind: 'held', contended: false },
    ])
  })

  it('describes its holders a moment after the grant, and leaves no description behind', async () => {
    const [a, b] = [open(server.url), open(server.url)]
    const wanted = request('described', { owner: 'host-7, "worker" №2\r\n' })
    const { token } = await take(a, wanted)
    const info = await b.inspect('described', TIMEOUT_MS)
    expect('kind' in info || info.holders).toMatchObject([
      { id: wanted.id, owner: wanted.owner, token, weight: 1 },
    ])
    await a.release(wanted, undefined, TIMEOUT_MS)
    expect(await command(server, `mg holdfast:d:${nonceOf(wanted.id)}`)).toBe('EN')
  })

  it('remembers a withdrawal through the next holder, and only for its time', async () => {
    const [a, b] = [open(server.url), open(server.url)]
    const late = request('tomb')
    await take(a, late)
    expect((await a.withdraw(late, TIMEOUT_MS)).kind).toBe('released')
    expect((await b.claim(late, TIMEOUT_MS)).kind).toBe('busy')
    const next = request('tomb')
    await take(b, next)
    await b.release(next, undefined, TIMEOUT_MS)
    // The copy of the claim as it was on the wire, from nowhere.
    expect((await b.claim(late, TIMEOUT_MS)).kind).toBe('busy')
    const left = Number((await command(server, 'mg holdfast:l:tomb t')).slice(4))
    expect(left).toBeGreaterThan(50)
    expect(left).toBeLessThanOrEqual(60)
  })

  it('says that a claim is gone only when it is, also one that takes the place of another just then', async () => {
    const store = open(server.url)
    const before = request('both')
    await take(store, before)
    await store.withdraw(before, TIMEOUT_MS)
    const wanted = request('both')
    // Both find what is left of the one before. The claim comes first, and changes it.
    const asked = store.claim(wanted, TIMEOUT_MS)
    const first = await store.withdraw(wanted, TIMEOUT_MS)
    await asked
    expect(first.kind).toBe('unknown')
    expect((await store.withdraw(wanted, TIMEOUT_MS)).kind).toBe('released')
    await take(store, request('both'))
  })

  it('is refused by a server without CAS, with a message that says what to do', async () => {
    const { url } = await start(['-C'], build)
    const answer = await open(url).claim(request('a'), TIMEOUT_MS)
    expect(answer).toMatchObject({ kind: 'unknown', retryable: false })
    expect(answer.kind === 'unknown' && String(answer.cause)).toContain('Start it without -C')
    await expect(openMemcachedStore(url)).rejects.toThrow('Start it without -C')
    expect(await checkMemcached(url)).toMatchObject([{ check: 'cas', level: 'error' }])
  })

  it('proves who it is to a server that asks, and tells nobody else the password', async () => {
    const users = join(server.dir, 'users')
    writeFileSync(users, 'me:s3cret\n', { mode: 0o644 })
    const guarded = await start(['-Y', users], build)
    const at = guarded.url.slice('memcached://'.length)
    await take(open(`memcached://me:s3cret@${at}`), request('a'))
    await take(open(guarded.url, { user: 'me', password: 's3cret' }), request('b'))
    for (const url of [guarded.url, `memcached://me:wrong@${at}`]) {
      const answer = await open(url).claim(request('c'), TIMEOUT_MS)
      expect(answer).toMatchObject({ kind: 'unknown', retryable: false })
      expect(answer.kind === 'unknown' && String(answer.cause)).toMatch(/wants a user|refused the user/)
    }
    // A server that asks for none must not get the password to store it.
    await take(open(`memcached://me:s3cret@${server.host}:${server.port}`), request('d'))
    expect((await keys(server)).filter((key) => !key.startsWith('holdfast:'))).toEqual([])
  })

  it('keeps locks where the prefix in the URL says, as the option would', async () => {
    await take(open(`${server.url}?prefix=shop:`), request('a'))
    const others = [
      await open(server.url, { prefix: 'shop:' }).claim(request('a'), TIMEOUT_MS),
      await open(`${server.url}?prefix=shop:`, { prefix: 'other:' }).claim(request('a'), TIMEOUT_MS),
      await open(server.url).claim(request('a'), TIMEOUT_MS),
    ]
    expect(others.map(({ kind }) => kind)).toEqual(['busy', 'held', 'held'])
    await take(open(`${server.url}?prefix=a+b:`), request('plus'))
    const plus = await open(server.url, { prefix: 'a+b:' }).claim(request('plus'), TIMEOUT_MS)
    expect(plus.kind).toBe('busy')
  })

  it('works over a unix socket', async () => {
    const path = join(server.dir, 'cache.sock')
    const local = await launchOnSocket(path, build.command ?? 'memcached')
    undo.push(() => local())
    expect((await take(open(`memcached://${path}`), request('a'))).count).toBe(1)
  })

  it('reports what an operator should know', async () => {
    const findings = await checkMemcached(server.url)
    expect(findings.map(({ check, level }) => [check, level])).toEqual([
      ['version', 'ok'],
      ['cas', 'ok'],
      ['evictions', 'ok'],
      ['eviction-policy', 'warning'],
      ['memory', 'ok'],
      ['flushes', 'ok'],
      ['connections', 'ok'],
    ])
    const other = await start(['-M', '-m', '2'], build)
    await command(other, 'flush_all')
    const warned = await checkMemcached(other.url)
    expect(warned.find(({ check }) => check === 'eviction-policy')?.level).toBe('ok')
    expect(warned.find(({ check }) => check === 'flushes')?.level).toBe('warning')
  })

  it('lets the process end when nobody waits for an answer', async () => {
    const script = `
      import { memcachedStore } from ${JSON.stringify(new URL('../../../dist/stores/memcached/index.js', import.meta.url).href)}
      const store = memcachedStore(${JSON.stringify(server.url)})
      const answer = await store.claim(${JSON.stringify(request('exit'))}, 2000)
      console.log(answer.kind)`
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      timeout: 10_000,
    })
    expect(said.trim()).toBe('held')
  })
})

describe('addresses', () => {
  it.each([
    'memcached://',
    'redis://x',
    'memcached://h/path',
    'nonsense',
    'http://me:s3cret@h',
    'memcached://me:s3cret%zz@h',
    'memcached://me:1#s3cret@h',
    'memcached://h?password=s3cret',
    'memcached:///run/memcached.sock?Prefix=shop:',
  ])('%s is refused', (url) => {
    expect(() => memcachedStore(url)).toThrow(/url must/)
    expect(() => memcachedStore(url)).not.toThrow(/s3cret/)
  })

  it('several servers are refused, and the message says why', () => {
    for (const url of ['memcached://h1:1,h2:2', 'MEMCACHEDS://me:s3cret@h1,h2/?prefix=a'])
      expect(() => memcachedStore(url)).toThrow('must name one server')
    expect(parseUrl('memcached://me:a,b@h?prefix=c,d')).toMatchObject({ password: 'a,b', prefix: 'c,d' })
  })

  it('tls options need a tls address', () => {
    expect(() => memcachedStore('memcached://h', { tls: {} })).toThrow('memcacheds://')
  })

  it('options for TLS that Node refuses are an answer, as everything is, and asking again cannot help', async () => {
    const store = memcachedStore('memcacheds://127.0.0.1:1', { tls: { cert: 'none', key: 'none' } })
    const useless = { kind: 'unknown', retryable: false }
    expect(await store.claim(request('x'), 1000)).toMatchObject(useless)
    expect(await store.renew([{ ...request('x') }], 1000)).toMatchObject([useless])
    await store.close()
  })

  it('a store that was closed says so, and that asking again cannot help', async () => {
    const store = memcachedStore('memcached://127.0.0.1:1')
    await store.close()
    expect(await store.claim(request('x'), 1000)).toMatchObject({ kind: 'unknown', retryable: false })
  })

  it('an unreachable server is told apart, at once', async () => {
    await expect(openMemcachedStore('memcached://127.0.0.1:1')).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
  })
})

describe.skipIf(!available('memcached'))('TLS', () => {
  it('is used with memcacheds://, and certificates are checked', async () => {
    const server = await start([])
    const [key, cert] = [join(server.dir, 'key.pem'), join(server.dir, 'cert.pem')]
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '2',
        '-keyout',
        key,
        '-out',
        cert,
        ...subject,
      ],
      { stdio: 'ignore' },
    )
    const front = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (socket) => {
      const behind = connect(server.port, server.host)
      socket.on('error', () => behind.destroy())
      behind.on('error', () => socket.destroy())
      socket.pipe(behind).pipe(socket)
    })
    await new Promise<void>((resolve) => void front.listen(0, '127.0.0.1', resolve))
    undo.push(() => front.close())
    const url = `memcacheds://127.0.0.1:${(front.address() as AddressInfo).port}`
    await take(open(url, { tls: { ca: readFileSync(cert) } }), request('a'))
    const answer = await open(url).claim(request('b'), TIMEOUT_MS)
    expect(answer).toMatchObject({ kind: 'unknown' })
    expect(answer.kind === 'unknown' && (answer.cause as { code?: string }).code).toBe(
      'DEPTH_ZERO_SELF_SIGNED_CERT',
    )
  })
})

/** memcached listens on a socket or on a port, never both, so the services cannot start this one. */
async function launchOnSocket(path: string, program: string): Promise<() => Promise<void>> {
  const child = spawn(program, ['-s', path, '-u', userInfo().username], { stdio: 'ignore' })
  while (!existsSync(path)) await new Promise((resolve) => void setTimeout(resolve, 10))
  return async () => {
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
}
