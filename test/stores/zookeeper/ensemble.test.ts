import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'

import { available, zookeeperEnsemble } from '../../../scripts/services.mjs'
import type { Server, ZooKeeperEnsemble } from '../../../scripts/services.mjs'
import { Holdfast } from '../../../src/index.ts'
import type { Lease } from '../../../src/index.ts'
import { ZooKeeper } from '../../../src/stores/zookeeper/client/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { longestTtl } from '../../../src/stores/zookeeper/zk-session.ts'
import { FaultProxy } from 'holdfast/testkit'
import { leftovers, MAX_SESSION_TIMEOUT } from './kit.ts'

describe.skipIf(!available('zookeeper'))('a ZooKeeper ensemble of three', () => {
  let ensemble: ZooKeeperEnsemble
  let names = 0
  const open: { close(): unknown }[] = []
  const kept = <T extends { close(): unknown }>(one: T): T => {
    open.push(one)
    return one
  }
  const name = (): string => `ensemble-${names++}`
  const connect = (servers: readonly Server[] = ensemble.servers): string =>
    servers.map(({ host, port }) => `${host}:${port}`).join(',')
  /** Told its server first, and the others in case that one fails. */
  const holdfast = (at = connect(), ttl = 5000): Holdfast => {
    const store = kept(zookeeperStore(at, { maxSessionTimeout: MAX_SESSION_TIMEOUT }))
    return kept(new Holdfast(store, { ttl, requestTimeout: 1000 }))
  }
  const running = async (mode: 'leader' | 'follower'): Promise<Server> => {
    const found = await vi.waitFor(async () => {
      const server = await ensemble[mode]()
      expect(server).toBeDefined()
      return server
    })
    return found as Server
  }

  beforeAll(async () => void (ensemble = await zookeeperEnsemble()))
  afterAll(() => ensemble.stop())
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close()
    for (const server of ensemble.servers) if (server.pid === undefined) await server.restart()
    await ensemble.serving()
  })

  /** What must be true of every fault that is shorter than the session: nobody loses anything, and waiters are served. */
  async function survives(fault: () => Promise<unknown>): Promise<string[]> {
    const [a, b, c] = [holdfast(connect(), 20_000), holdfast(connect(), 20_000), holdfast(connect(), 20_000)]
    const lock = name()
    const first = await a.mutex(lock).acquire()
    const order: string[] = []
    const enter = async (who: string, lease: Promise<Lease>): Promise<Lease> => {
      const got = await lease
      order.push(who)
      return got
    }
    const second = enter('b', b.mutex(lock).acquire({ wait: 60_000 }))
    await vi.waitFor(async () => expect((await a.inspect(lock)).waiters).toHaveLength(1))
    const third = enter('c', c.mutex(lock).acquire({ wait: 60_000 }))
    await vi.waitFor(async () => expect((await a.inspect(lock)).waiters).toHaveLength(2))
    await fault()
    first.assertHeld()
    expect(order).toEqual([])
    await first.release()
    const next = await second
    expect(next.token).toBeGreaterThan(first.token)
    await next.release()
    const last = await third
    expect(last.token).toBeGreaterThan(next.token)
    await last.release()
    await vi.waitFor(
      async () => expect((await leftovers(connect())).filter((path) => path.includes(lock))).toEqual([]),
      {
        timeout: 10_000,
      },
    )
    return order
  }

  it('renews by a majority: a leader without its followers, which does not know it yet, renews nothing', async () => {
    const leader = await running('leader')
    const followers = ensemble.servers.filter((server) => server !== leader)
    const store = kept(zookeeperStore(connect([leader]), { maxSessionTimeout: MAX_SESSION_TIMEOUT }))
    const terms = { weight: 1, capacity: 1, ttl: 4000, patience: 4000, tokens: 1, owner: 'o' } as const
    const claim = { ...terms, name: name(), id: 'session.1', whenBusy: 'try' } as const
    expect(await store.claim(claim, 3000)).toMatchObject({ kind: 'held' })
    const renew = async (): Promise<string | undefined> =>
      (await store.renew([{ ...claim, tokens: 0 }], 1000))[0]?.kind
    expect(await renew()).toBe('renewed')
    // Older than what a new leader gives every session.
    await new Promise((resolve) => setTimeout(resolve, 1200))
    await Promise.all(followers.map((server) => server.pause()))
    expect(await renew()).toBe('unknown')
    await Promise.all(followers.map((server) => server.resume()))
    await vi.waitFor(async () => expect(await renew()).toBe('renewed'), { timeout: 8000 })
  })

  it('keeps every lock and every place in line when the leader is killed', async () => {
    const order = await survives(async () => {
      await (await running('leader')).kill('SIGKILL')
      await ensemble.serving()
    })
    expect(order).toEqual(['b', 'c'])
  })

  it('keeps every lock and every place in line when a follower is killed', async () => {
    const order = await survives(async () => (await running('follower')).kill('SIGKILL'))
    expect(order).toEqual(['b', 'c'])
  })

  it('keeps every lock and every place in line when all servers are restarted', async () => {
    const order = await survives(async () => {
      await ensemble.restart()
      await ensemble.serving()
    })
    expect(order).toEqual(['b', 'c'])
  })

  it('tells the czxid of nodes that are created together, at whichever server', async () => {
    const clients = await Promise.all(
      ensemble.servers.map(async (server) => {
        const zk = kept(new ZooKeeper(connect([server])))
        await zk.connected()
        return zk
      }),
    )
    const dirs = ['/together-0', '/together-1', '/together-2']
    await Promise.all(dirs.map((dir) => (clients[0] as ZooKeeper).create(dir)))
    const rounds = async (zk: ZooKeeper): Promise<void> => {
      for (let round = 0; round < 20; round++) {
        const made = await Promise.all(
          dirs.map((dir) =>
            zk.write({ kind: 'create', path: `${dir}/n-`, mode: 'ephemeral-sequential', unique: true }),
          ),
        )
        const stats = await Promise.all(made.map(({ path }) => zk.exists(path)))
        expect(stats.map((stat) => stat?.czxid)).toEqual(made.map(({ zxid }) => zxid))
        expect(new Set(made.map(({ zxid }) => zxid)).size).toBe(1)
      }
    }
    await Promise.all(clients.map(rounds))
  })

  it('keeps every lock when a server stands still for a while', async () => {
    const order = await survives(async () => {
      const server = await running('follower')
      await server.pause()
      await new Promise((resolve) => setTimeout(resolve, 3000))
      await server.resume()
    })
    expect(order).toEqual(['b', 'c'])
  })

  it('keeps the session of a client over the death of its leader', async () => {
    const zk = kept(new ZooKeeper(connect(), { sessionTimeout: 20_000 }))
    await zk.connected()
    const id = zk.sessionId
    const { path } = await zk.create(`/${name()}`, { mode: 'ephemeral' })
    await (await running('leader')).kill('SIGKILL')
    await vi.waitFor(async () => expect(await zk.exists(path)).not.toBeNull(), { timeout: 20_000 })
    expect(zk.sessionId).toBe(id)
  })

  it('ends a lease behind a server that lost the others before somebody else gets the lock', async () => {
    const follower = await running('follower')
    const [alone, others] = [
      holdfast(connect([follower]), 1500),
      holdfast(connect(ensemble.servers.filter((one) => one !== follower)), 1500),
    ]
    const lock = name()
    const lease = await alone.mutex(lock).acquire()
    const { signal } = lease
    // It can neither pass on what it hears nor hear what is decided; its client's connection stays open.
    await follower.pause()
    const next = await others.mutex(lock).acquire({ wait: 20_000 })
    expect([lease.held, signal.aborted]).toEqual([false, true])
    expect(next.token).toBeGreaterThan(lease.token)
    await follower.resume()
    await next.release()
  })

  it('keeps a session for longer than a lease, also if its server dies with the news that it lives', async () => {
    // A follower tells its leader only from time to time whom it heard from, so the leader's count may begin earlier than
    // the last answer suggests. This is why a session lasts longer than the leases that hang on it.
    const timeout = 1000
    for (let round = 0; round < 4; round++) {
      const [follower, leader] = [await running('follower'), await running('leader')]
      const zk = kept(new ZooKeeper(connect([follower]), { sessionTimeout: timeout }))
      const other = kept(new ZooKeeper(connect([leader])))
      await Promise.all([zk.connected(), other.connected()])
      const { path } = await zk.create(`/${name()}`, { mode: 'ephemeral' })
      let vanish: () => void = () => undefined
      const gone = new Promise<number>((resolve) => (vanish = () => resolve(performance.now())))
      await other.exists(path, { watch: () => vanish() })
      await new Promise((resolve) => setTimeout(resolve, 300 + 50 * round))
      const sentAt = performance.now()
      await zk.sync()
      await follower.kill('SIGKILL')
      expect((await gone) - sentAt).toBeGreaterThan(longestTtl(timeout))
      await follower.restart()
      await ensemble.serving()
    }
  })

  it('gives what one client wrote to the next in the right order, whichever servers they use', async () => {
    const lock = name()
    const holdfasts = ensemble.servers.map((server) => holdfast(connect([server])))
    let inside = 0
    let sections = 0
    const tokens: bigint[] = []
    await Promise.all(
      holdfasts.map(async (one) => {
        for (let round = 0; round < 30; round++) {
          await one.mutex(lock).run((lease) => {
            expect(++inside).toBe(1)
            tokens.push(lease.token)
            sections++
            inside--
          })
        }
      }),
    )
    expect(sections).toBe(90)
    expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)))
  })

  it('does not count a create twice when the connection breaks between request and reply', async () => {
    const server = await running('follower')
    const link = kept(await FaultProxy.open(server))
    const own = holdfast(`127.0.0.1:${link.port}`)
    const lock = name()
    const mutex = own.mutex(lock)
    await (await mutex.acquire()).release()
    for (let round = 0; round < 5; round++) {
      const cut = link.cutReply({ match: (chunk) => chunk.includes(lock) })
      const lease = await mutex.acquire()
      expect((await leftovers(connect())).filter((path) => path.includes(lock))).toHaveLength(1)
      await lease.release()
      await cut
    }
    await vi.waitFor(async () =>
      expect((await leftovers(connect())).filter((path) => path.includes(lock))).toEqual([]),
    )
  })
})
