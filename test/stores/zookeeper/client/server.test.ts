import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'

import { available, fourLetters, zookeeper } from '../../../../scripts/services.mjs'
import type { Server } from '../../../../scripts/services.mjs'
import { CREATOR_ACL, ZooKeeper } from '../../../../src/stores/zookeeper/client/index.ts'
import type {
  CreateMode,
  WatchEvent,
  ZooKeeperOptions,
} from '../../../../src/stores/zookeeper/client/index.ts'
import { MODES } from '../../../../src/stores/zookeeper/client/records.ts'
import { FaultProxy } from 'holdfast/testkit'

const run = promisify(execFile)
type Untyped = (...args: readonly unknown[]) => Promise<unknown>
const JAVA = ['-Dznode.container.checkIntervalMs=200', '-Dzookeeper.extendedTypesEnabled=true']

describe.skipIf(!available('zookeeper'))('a ZooKeeper client at a real server', () => {
  let server: Server
  const open: { close(): unknown }[] = []
  let folders = 0

  beforeAll(async () => void (server = await zookeeper({ java: JAVA })))
  afterAll(() => server.stop())
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close()
  })

  async function client(options: ZooKeeperOptions & { at?: { port: number } } = {}): Promise<ZooKeeper> {
    const { at = server, ...rest } = options
    const zk = new ZooKeeper(`127.0.0.1:${at.port}`, { sessionTimeout: 10_000, ...rest })
    open.push(zk)
    await zk.connected()
    return zk
  }

  async function proxy(): Promise<FaultProxy> {
    const made = await FaultProxy.open(server)
    open.push(made)
    return made
  }

  /** A directory of the test's own. */
  async function folder(zk: ZooKeeper): Promise<string> {
    const path = `/test-${process.pid}-${folders++}`
    await zk.create(path)
    return path
  }

  const watcher = (): { events: WatchEvent[]; watch: (event: WatchEvent) => void } => {
    const events: WatchEvent[] = []
    return { events, watch: (event) => void events.push(event) }
  }

  it('creates, reads, changes and deletes nodes', async () => {
    const zk = await client()
    const at = await folder(zk)
    const { path, stat } = await zk.create(`${at}/a`, { data: 'eins' })
    expect(path).toBe(`${at}/a`)
    const read = await zk.getData(path)
    expect(read.data.toString()).toBe('eins')
    expect(read.stat).toEqual(stat)
    const changed = await zk.setData(path, Buffer.from('zwei'), 0)
    expect([changed.version, changed.czxid, changed.mzxid > changed.czxid]).toEqual([1, stat.czxid, true])
    await expect(zk.setData(path, 'drei', 0)).rejects.toMatchObject({ code: 'BAD_VERSION', path })
    await expect(zk.delete(at)).rejects.toMatchObject({ code: 'NOT_EMPTY' })
    await expect(zk.create(path)).rejects.toMatchObject({ code: 'NODE_EXISTS' })
    expect((await zk.exists(path))?.version).toBe(1)
    await zk.delete(path, 1)
    expect(await zk.exists(path)).toBeNull()
    await expect(zk.getData(path)).rejects.toMatchObject({ code: 'NO_NODE', path })
  })

  it('does nothing with arguments that only somebody without our types can give, and says so', async () => {
    const zk = await client()
    const at = await folder(zk)
    const untyped = zk as unknown as Record<'delete' | 'create' | 'write' | 'addWatch', Untyped> & {
      transaction(writes: readonly unknown[]): Promise<unknown>
    }
    const answers = await Promise.allSettled([
      untyped.delete(at, 0.5),
      untyped.delete(at, Number.NaN),
      untyped.delete(at, null),
      untyped.transaction([{ kind: 'check', path: at }]),
      untyped.create(`${at}/locked`, { acl: [{ perms: 31, scheme: 'world', id: 'anyone' }] }),
      untyped.write({ kind: 'setData', path: `${at}/made`, data: 'x' }),
      untyped.addWatch(at, 'children', () => undefined),
    ])
    for (const answer of answers) expect(answer).toMatchObject({ reason: { code: 'BAD_ARGUMENTS' } })
    expect((await zk.getChildren(at)).children).toEqual([])
  })

  it.each(['digest:user:secret', [{ scheme: 'digest' }], [{ scheme: 'digest', auth: { user: 'secret' } }]])(
    'does not go on without credentials that it cannot send: %j',
    async (auth) => {
      const untyped = auth as unknown as NonNullable<ZooKeeperOptions['auth']>
      const refusal = expect.objectContaining({
        code: 'BAD_ARGUMENTS',
        message: expect.not.stringContaining('secret') as string,
      }) as Error
      expect(() => new ZooKeeper(`127.0.0.1:${server.port}`, { auth: untyped })).toThrow(refusal)
      const zk = await client()
      for (const info of Array.isArray(auth) ? untyped : []) expect(() => zk.addAuth(info)).toThrow(refusal)
    },
  )

  it('says why a server may have closed a connection that it took', async () => {
    await using small = await zookeeper({ config: { maxClientCnxns: 1 } })
    await client({ at: small })
    const second = new ZooKeeper(`127.0.0.1:${small.port}`)
    open.push(second)
    const { message } = await new Promise<Error>((resolve) => {
      second.onState((_, error) => error !== undefined && resolve(error))
    })
    expect(message).toContain('maxClientCnxns')
  })

  it('gives sequential nodes their numbers, and their transaction in the same answer', async () => {
    const zk = await client()
    const at = await folder(zk)
    const made = await Promise.all(
      Array.from({ length: 3 }, () => zk.create(`${at}/n-`, { mode: 'ephemeral-sequential' })),
    )
    expect(made.map(({ path }) => path)).toEqual([0, 1, 2].map((number) => `${at}/n-000000000${number}`))
    expect(made.every(({ stat }) => stat.ephemeralOwner === zk.sessionId)).toBe(true)
    expect(new Set(made.map(({ stat }) => stat.czxid)).size).toBe(3)
    expect((await zk.getEphemerals(at)).sort()).toEqual(made.map(({ path }) => path))
  })

  it('does several writes as one, or none of them', async () => {
    const zk = await client()
    const at = await folder(zk)
    const [created, changed] = await zk.transaction([
      { kind: 'create', path: `${at}/a`, data: 'x' },
      { kind: 'setData', path: at, data: 'y', version: 0 },
      { kind: 'check', path: at, version: 1 },
    ])
    expect(created).toMatchObject({ path: `${at}/a` })
    expect(changed).toMatchObject({ version: 1 })
    const failing = zk.transaction([
      { kind: 'delete', path: `${at}/a` },
      { kind: 'check', path: at, version: 7 },
      { kind: 'create', path: `${at}/b` },
    ])
    await expect(failing).rejects.toMatchObject({ code: 'BAD_VERSION', path: at })
    expect((await zk.getChildren(at)).children).toEqual(['a'])
  })

  const modes = Object.keys(MODES) as CreateMode[]

  it.each(modes)('creates %s nodes in a transaction too', async (mode) => {
    const zk = await client()
    const states: string[] = []
    zk.onState((state) => states.push(state))
    const at = await folder(zk)
    const [created, , last] = await zk.transaction([
      { kind: 'create', path: `${at}/a`, mode, ttl: 60_000 },
      { kind: 'check', path: at, version: 0 },
      { kind: 'create', path: `${at}/b` },
    ])
    expect((await zk.getChildren(at)).children.map((child) => `${at}/${child}`).sort()).toEqual(
      [created, last].map((one) => (one as { path: string }).path).sort(),
    )
    expect(states).toEqual([])
  })

  it('makes real containers: they go when their last child has gone', async () => {
    const zk = await client()
    const at = await folder(zk)
    await zk.createPath(`${at}/x/y`)
    await zk.createPath(`${at}/x/y`)
    const { path } = await zk.create(`${at}/x/y/z`)
    await zk.delete(path)
    await vi.waitFor(async () => expect((await zk.getChildren(at)).children).toEqual([]), { timeout: 5000 })
  })

  it('makes nodes with a ttl', async () => {
    const zk = await client()
    const at = await folder(zk)
    const { path } = await zk.create(`${at}/t`, { mode: 'persistent-ttl', ttl: 100 })
    await vi.waitFor(async () => expect(await zk.exists(path)).toBeNull(), { timeout: 5000 })
  })

  it('keeps to its chroot, and makes it', async () => {
    const zk = await client()
    const at = await folder(zk)
    const below = await client({ chroot: `${at}/deep/er` })
    await below.createPath('/a')
    const { path } = await below.create('/a/b-', { mode: 'ephemeral-sequential' })
    expect(path).toBe('/a/b-0000000000')
    expect(await zk.exists(`${at}/deep/er${path}`)).not.toBeNull()
    const { events, watch } = watcher()
    await below.getData(path, { watch })
    await zk.delete(`${at}/deep/er${path}`)
    await vi.waitFor(() => expect(events).toEqual([{ type: 'deleted', path }]))
  })

  it('authenticates before anything else, so that what is private stays so', async () => {
    const own = await client({ auth: [{ scheme: 'digest', auth: 'me:secret' }] })
    const at = await folder(own)
    await own.create(`${at}/private`, { acl: CREATOR_ACL, data: 'x' })
    expect((await own.whoAmI()).some(({ scheme, id }) => scheme === 'digest' && id === 'me')).toBe(true)
    const other = await client()
    await expect(other.getData(`${at}/private`)).rejects.toMatchObject({ code: 'NO_AUTH' })
    other.addAuth({ scheme: 'digest', auth: 'me:secret' })
    expect((await other.getData(`${at}/private`)).data.toString()).toBe('x')
    const { acl } = await own.getAcl(`${at}/private`)
    expect(acl[0]).toMatchObject({ permissions: 31, scheme: 'digest' })
  })

  it('tells of changes once, and of all of them with a persistent watch', async () => {
    // The two kinds at one node must not share a connection: there the recursive one silences the other, at the server.
    const [zk, other, third] = [await client(), await client(), await client()]
    const at = await folder(zk)
    const [data, children, absent, below] = [watcher(), watcher(), watcher(), watcher()]
    await zk.getData(at, { watch: data.watch })
    await zk.getChildren(at, { watch: children.watch })
    expect(await zk.exists(`${at}/a`, { watch: absent.watch })).toBeNull()
    await third.addWatch(at, 'recursive', below.watch)
    await other.setData(at, 'x')
    await other.create(`${at}/a`)
    await other.setData(`${at}/a`, 'y')
    await other.delete(`${at}/a`)
    await vi.waitFor(() => expect(below.events).toHaveLength(4))
    await zk.sync()
    expect(data.events).toEqual([{ type: 'changed', path: at }])
    expect(children.events).toEqual([{ type: 'children', path: at }])
    expect(absent.events).toEqual([{ type: 'created', path: `${at}/a` }])
    expect(below.events.map(({ type, path }) => [type, path])).toEqual([
      ['changed', at],
      ['created', `${at}/a`],
      ['changed', `${at}/a`],
      ['deleted', `${at}/a`],
    ])
  })

  it('leaves no watch behind at the server when it is taken back', async () => {
    const zk = await client()
    const at = await folder(zk)
    const watched = async (): Promise<number> =>
      Number(/zk_watch_count\t(\d+)/.exec(await fourLetters(server, 'mntr'))?.[1])
    const before = await watched()
    const [first, second, third] = [watcher(), watcher(), watcher()]
    await zk.getData(at, { watch: first.watch })
    await zk.getData(at, { watch: second.watch })
    await zk.getChildren(at, { watch: third.watch })
    expect(await watched()).toBe(before + 2)
    zk.unwatch(at, 'data', first.watch)
    expect(zk.unwatch(at, 'children', third.watch)).toBe(true)
    await zk.sync()
    expect(await watched()).toBe(before + 1)
    zk.unwatch(at, 'data', second.watch)
    await zk.sync()
    expect([await watched(), zk.watchCount]).toEqual([before, 0])
    await expect(zk.getData(`${at}/none`, { watch: first.watch })).rejects.toThrow('NO_NODE')
    expect([await watched(), zk.watchCount]).toEqual([before, 0])
  })

  it.each(['persistent', 'recursive'] as const)(
    'leaves the other watches of a path when a %s one is taken back, and the other way round',
    async (kind) => {
      const zk = await client()
      const [at, beside] = [await folder(zk), await folder(zk)]
      const [lasting, data, kept, children] = [watcher(), watcher(), watcher(), watcher()]
      await zk.addWatch(at, kind, lasting.watch)
      await zk.getData(at, { watch: data.watch })
      expect(zk.unwatch(at, kind, lasting.watch)).toBe(true)
      await zk.addWatch(beside, kind, kept.watch)
      await zk.getChildren(beside, { watch: children.watch })
      expect(zk.unwatch(beside, 'children', children.watch)).toBe(true)
      await zk.setData(at, 'x')
      await zk.setData(beside, 'x')
      await zk.sync()
      expect([data.events, kept.events, lasting.events].map(({ length }) => length)).toEqual([1, 1, 0])
    },
  )

  it.each([
    ['', undefined],
    [', where requests have to be short too', 1000],
  ])(
    'keeps its session, its nodes and 12,000 watches over a broken connection, and hears what it missed%s',
    async (_, maxRequest) => {
      const link = await proxy()
      const settings = { at: link, sessionTimeout: 30_000, maxRequest }
      const [zk, other] = [await client(settings), await client()]
      const at = await folder(zk)
      const id = zk.sessionId
      const own = await zk.create(`${at}/own`, { mode: 'ephemeral' })
      const long = 'x'.repeat(90)
      const paths = Array.from({ length: 12_000 }, (_, index) => `${at}/${long}${index}`)
      const { events, watch } = watcher()
      await Promise.all(paths.map((path) => zk.exists(path, { watch })))
      expect(zk.watchCount).toBe(12_000)
      await link.refuse()
      link.reset()
      await expect(zk.exists(at)).rejects.toMatchObject({ code: 'CONNECTION_LOSS' })
      for (const index of [0, 5_000, 11_999]) await other.create(paths[index] as string)
      await link.accept()
      await zk.connected()
      await vi.waitFor(() => expect(events).toHaveLength(3), { timeout: 10_000 })
      expect(zk.sessionId).toBe(id)
      expect((await zk.exists(own.path))?.ephemeralOwner).toBe(id)
      expect(link.accepted).toBeLessThan(5)
    },
  )

  it('fails a request at once while disconnected, and does not send it later', async () => {
    const link = await proxy()
    const zk = await client({ at: link })
    const at = await folder(zk)
    await link.refuse()
    link.reset()
    await vi.waitFor(() => expect(zk.state).toBe('disconnected'))
    await expect(zk.create(`${at}/late`)).rejects.toMatchObject({ code: 'CONNECTION_LOSS' })
    await link.accept()
    await zk.connected()
    expect(await zk.exists(`${at}/late`)).toBeNull()
  })

  it('says that its session may be over before the server gives away what hangs on it', async () => {
    const link = await proxy()
    const zk = await client({ at: link, sessionTimeout: 1500 })
    const other = await client()
    const at = await folder(other)
    const { path } = await zk.create(`${at}/own`, { mode: 'ephemeral' })
    let seen: () => void = () => undefined
    const gone = new Promise<number>((resolve) => (seen = () => resolve(zk.sessionRemaining)))
    await other.exists(path, { watch: () => seen() })
    expect(zk.sessionRemaining).toBeGreaterThan(0)
    link.set('requests', { blackhole: true })
    link.set('replies', { blackhole: true })
    expect(await gone).toBe(0)
    expect(zk.state).not.toBe('connected')
    link.heal()
    await expect(zk.connected()).rejects.toMatchObject({ code: 'SESSION_EXPIRED' })
  })

  it('lives through a blocked event loop that is shorter than its session', async () => {
    const zk = await client({ sessionTimeout: 1200 })
    const states: string[] = []
    zk.onState((state) => states.push(state))
    const until = performance.now() + 900
    while (performance.now() < until);
    await zk.sync()
    await zk.sync()
    expect(states).toEqual([])
  })

  it('keeps an idle session alive', async () => {
    const zk = await client({ sessionTimeout: 600 })
    const states: string[] = []
    zk.onState((state) => states.push(state))
    await new Promise((resolve) => setTimeout(resolve, 2500))
    await zk.sync()
    expect([states, zk.sessionTimeout]).toEqual([[], 600])
  })

  it('learns which session timeout the server allows', async () => {
    const zk = await client({ sessionTimeout: 10 })
    expect(zk.sessionTimeout).toBe(300)
  })

  it('ends its session when closed: its nodes go at once', async () => {
    const [zk, other] = [await client(), await client()]
    const at = await folder(other)
    const { path } = await zk.create(`${at}/own`, { mode: 'ephemeral' })
    await zk.close()
    expect(await other.exists(path)).toBeNull()
    await expect(zk.sync()).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('speaks TLS, and only with servers that it can trust', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'holdfast-tls-'))
    const store = (name: string): string[] => [
      '-storetype',
      'PKCS12',
      '-storepass',
      'secret',
      '-keystore',
      join(dir, name),
    ]
    try {
      const name = ['-dname', 'CN=localhost', '-ext', 'san=ip:127.0.0.1,dns:localhost']
      await run('keytool', [
        '-genkeypair',
        '-keyalg',
        'RSA',
        '-validity',
        '2',
        ...name,
        '-alias',
        'zk',
        ...store('key.p12'),
      ])
      const { stdout: ca } = await run('keytool', [
        '-exportcert',
        '-rfc',
        '-alias',
        'zk',
        ...store('key.p12'),
      ])
      writeFileSync(join(dir, 'ca.pem'), ca)
      await run('keytool', [
        '-importcert',
        '-noprompt',
        '-file',
        join(dir, 'ca.pem'),
        '-alias',
        'ca',
        ...store('trust.p12'),
      ])
      const port = server.port + 10_000
      await using secure = await zookeeper({
        config: {
          secureClientPort: port,
          secureClientPortAddress: '127.0.0.1',
          serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
          'ssl.keyStore.location': join(dir, 'key.p12'),
          'ssl.keyStore.password': 'secret',
          'ssl.trustStore.location': join(dir, 'trust.p12'),
          'ssl.trustStore.password': 'secret',
          'ssl.clientAuth': 'none',
        },
      })
      expect(secure.port).not.toBe(port)
      const zk = await client({ at: { port }, tls: { ca } })
      expect((await zk.getChildren('/')).children).toContain('zookeeper')
      await zk.close()
      const distrustful = new ZooKeeper(`127.0.0.1:${port}`, { tls: {} })
      open.push(distrustful)
      const cause = await vi.waitFor(async () => {
        const error = (await distrustful.sync().catch((failure: unknown) => failure)) as Error
        expect(String((error.cause as Error).cause)).toContain('self-signed')
        return error
      }, 10_000)
      expect(cause).toMatchObject({ code: 'CONNECTION_LOSS' })
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  })
})
