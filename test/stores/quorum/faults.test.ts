import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import { openRedisStore } from 'holdfast/redis'
import { FaultProxy } from 'holdfast/testkit'

import { available, clockShim, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { Crew } from '../redis/crew.ts'
import { MAX_TTL, openAt, request, setUp, startServers, stopAll } from './kit.ts'
import type { Place } from './kit.ts'
import { votesLeftAt } from './leftovers.ts'

const LAWFUL = { exclusivity: [], tokens: [] }

/** Three clients that fight over one lock on five servers while something happens to some of them. */
describe.skipIf(!available('redis'))('a lock that is fought over', () => {
  let servers: Server[]
  let proxies: FaultProxy[]
  let crew: Crew

  const start = async (places: readonly Place[]): Promise<void> => {
    crew = new Crew(await Promise.all([1, 2, 3].map(() => openAt(places, { setUp: 'wait' }))), 'contended')
    crew.start()
    await crew.progress(10)
  }
  beforeEach(async () => {
    servers = await startServers(5)
    proxies = []
    await setUp(servers)
  })
  afterEach(async () => {
    await crew.stop()
    for (const proxy of proxies) await proxy.close()
    await stopAll(servers)
  })
  const first = (count: number): Server[] => servers.slice(0, count)
  const proxied = async (count: number): Promise<void> => {
    proxies = await Promise.all(first(count).map((server) => FaultProxy.open(server)))
    await start([...proxies, ...servers.slice(count)])
  }

  it.each([1, 2])('goes on while %i servers are dead, also when they come back empty', async (count) => {
    await start(servers)
    for (const server of first(count)) await server.kill('SIGKILL')
    await crew.progress(20)
    for (const server of first(count)) await server.restart({ keepData: false })
    await sleep(MAX_TTL / 2)
    await crew.progress(10)
    expect(await crew.stop()).toEqual(LAWFUL)
    for (const server of servers.slice(count)) expect(await votesLeftAt(server)).toEqual([])
  })

  it.each([1, 2])('goes on while %i servers stand still, and when they go on', async (count) => {
    await start(servers)
    for (const server of first(count)) await server.pause()
    await crew.progress(20)
    for (const server of first(count)) await server.resume()
    await crew.progress(20)
    expect(await crew.stop()).toEqual(LAWFUL)
  })

  it('goes on while the network swallows everything to two servers', async () => {
    await proxied(2)
    for (const proxy of proxies) {
      proxy.set('requests', { blackhole: true })
      proxy.set('replies', { blackhole: true })
    }
    await crew.progress(20)
    for (const proxy of proxies) proxy.heal()
    await crew.progress(20)
    expect(await crew.stop()).toEqual(LAWFUL)
  })

  it('goes on while two servers are slow', async () => {
    await proxied(2)
    for (const proxy of proxies) proxy.set('replies', { latency: 150 })
    await crew.progress(20)
    for (const proxy of proxies) proxy.heal()
    await crew.progress(10)
    expect(await crew.stop()).toEqual(LAWFUL)
  })

  it('is held by nobody while three servers are dead, and goes on by itself when two are back', async () => {
    await start(servers)
    for (const server of first(3)) await server.kill('SIGKILL')
    await sleep(1_500)
    const during = crew.sections
    await sleep(300)
    expect(crew.sections).toBe(during)
    for (const server of first(2)) await server.restart({ keepData: false })
    await crew.progress(10)
    expect(await crew.stop()).toEqual(LAWFUL)
  })
})

describe.skipIf(!available('redis'))('without a majority', () => {
  let servers: Server[]
  let holdfast: Holdfast
  beforeAll(async () => {
    servers = await startServers(5)
    holdfast = new Holdfast(await openAt(servers), { ttl: 1_000, closeStore: true })
  })
  afterAll(async () => {
    await holdfast.close()
    await stopAll(servers)
  })

  it('a lock fails at once, and the error says so of every server', async () => {
    await (await holdfast.mutex('x').acquire()).release()
    for (const server of servers.slice(0, 3)) await server.kill('SIGKILL')
    const began = performance.now()
    const error: unknown = await holdfast
      .mutex('x')
      .tryAcquire()
      .catch((reason: unknown) => reason)
    expect(performance.now() - began).toBeLessThan(3_000)
    expect(error).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      cause: { code: 'QUORUM_UNAVAILABLE', needed: 3 },
    })
    const { nodes } = (error as { cause: { nodes: readonly { node: string; state: string }[] } }).cause
    expect(nodes.map(({ node }) => node)).toEqual(servers.map(({ host, port }) => `${host}:${port}`))
    expect(nodes.filter(({ state }) => state === 'no answer')).toHaveLength(3)
  })

  it('is told apart from a lock that others hold', async () => {
    for (const server of servers.slice(0, 3)) await server.restart()
    const other = new Holdfast(await openAt(servers), { ttl: 1_000, closeStore: true })
    const lease = await other.mutex('x').acquire({ wait: 5_000 })
    await expect(holdfast.mutex('x').acquire({ wait: 200 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' })
    await lease.release()
    await other.close()
  })

  it('of servers that are far away, open waits for them, and the error of a lock says what to set', async () => {
    const far = await Promise.all(servers.slice(3).map((server) => FaultProxy.open(server)))
    try {
      for (const proxy of far) proxy.set('replies', { latency: 300 })
      const said = new Holdfast(await openAt(far, { nodeTimeout: 2_000 }), { closeStore: true })
      await said.mutex('far').run(() => {})
      await said.close()
      const unsaid = new Holdfast(await openAt(far), { ttl: 1_000, closeStore: true })
      await expect(unsaid.mutex('far').tryAcquire()).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        cause: { message: expect.stringContaining('need a larger nodeTimeout') as string },
      })
      await unsaid.close()
    } finally {
      for (const proxy of far) await proxy.close()
    }
  })
})

/** A lease on three servers; the other two stand still meanwhile. Then one of the three forgets it. */
describe.skipIf(!available('redis'))('a server that forgets a lease', () => {
  let servers: Server[]
  afterEach(() => stopAll(servers))

  const takenOver = async (
    forget: (server: Server) => unknown,
    probation: 'wait' | 'now',
    before: (server: Server) => unknown = () => {},
  ): Promise<readonly [kind: string, grows: boolean]> => {
    await setUp(servers)
    await before(servers[2] as Server)
    const [a, b] = [await openAt(servers), await openAt(servers, { setUp: probation })]
    const [, , third, fourth, fifth] = servers as [Server, Server, Server, Server, Server]
    for (const server of [fourth, fifth]) await server.pause()
    const first = await a.claim(request('x', 'a.1', MAX_TTL), 1_000)
    // Longer than a vote is waited for.
    await sleep(150)
    for (const server of [fourth, fifth]) await server.resume()
    // What stood before the two has been given back when it was too late.
    await expect.poll(() => votesLeftAt(fourth)).toEqual([])
    await expect.poll(() => votesLeftAt(fifth)).toEqual([])
    await forget(third)
    // Every server is well again.
    let second = await b.claim(request('x', 'b.1'), 1_000)
    for (let tries = 0; tries < 5 && second.kind === 'busy' && probation === 'now'; tries++) {
      await sleep(50)
      second = await b.claim(request('x', `b.${tries + 2}`), 1_000)
    }
    await a.close()
    await b.close()
    const token = first.kind === 'held' ? first.token : 0n
    return [second.kind, second.kind === 'held' && second.token > token && token > 0n]
  }
  const restart = async (server: Server, keepData: boolean): Promise<void> => {
    await server.kill('SIGKILL')
    await server.restart({ keepData })
    await sleep(200)
  }
  const wipe = (server: Server): Promise<void> => restart(server, false)

  it('does not vote when it came back empty, until the lease has run out', async () => {
    servers = await startServers(5)
    expect(await takenOver(wipe, 'wait')).toEqual(['busy', false])
  })

  it('does not vote when it came back with a snapshot, until the lease has run out', async () => {
    servers = await startServers(5, { args: ['--save', '3600', '1'] })
    const save = (server: Server): Promise<unknown> => redisCommand(server, 'SAVE')
    expect(await takenOver((server) => restart(server, true), 'wait', save)).toEqual(['busy', false])
  })

  it('does not vote either when it writes a log since', async () => {
    servers = await startServers(1, { args: ['--save', '3600', '1'] })
    const [server] = servers as [Server]
    await redisCommand(server, 'SET', 'hf:v:node', '0')
    await redisCommand(server, 'SAVE')
    await server.kill('SIGKILL')
    await server.restart({ keepData: true })
    const store = await openRedisStore(server.url)
    const identify = async (): Promise<string> => {
      const node = await store.votes?.identify(30_000, 1_000)
      return node?.kind === 'unknown' ? String(node.cause) : `votes in ${node?.readyIn}`
    }
    await redisCommand(server, 'CONFIG', 'SET', 'appendonly', 'yes')
    expect(await identify()).toContain('it was started from a snapshot')
    await expect
      .poll(async () => String(await redisCommand(server, 'INFO', 'persistence')))
      .toContain('aof_rewrite_in_progress:0')
    expect(await identify()).toContain('it was started from a snapshot')
    await store.close()
  })

  it('votes at once when it came back with its log', async () => {
    servers = await startServers(5, { args: ['--appendonly', 'yes', '--save', '3600', '1'] })
    await setUp(servers)
    for (const server of servers.slice(0, 3)) await restart(server, true)
    const store = await openAt(servers, { setUp: 'wait' })
    for (const server of servers.slice(3)) await server.pause()
    expect(await store.claim(request('x', 'a.1', MAX_TTL), 2_000)).toMatchObject({ kind: 'held' })
    await store.close()
  })

  it('would give the lock to a second holder if it voted at once, with a larger token', async () => {
    servers = await startServers(5)
    expect(await takenOver(wipe, 'now')).toEqual(['held', true])
  })

  it('gives the lock to a second holder when its clock jumps, with a larger token', async () => {
    const shim = await clockShim()
    servers = await startServers(4)
    servers.splice(2, 0, ...(await startServers(1, { env: { ...shim.env } })))
    expect(await takenOver(() => shim.jump(60_000), 'now')).toEqual(['held', true])
    shim.dispose()
  })

  it('changes nothing by a clock that jumps as long as all servers can be reached', async () => {
    const shim = await clockShim()
    servers = await startServers(4)
    servers.push(...(await startServers(1, { env: { ...shim.env } })))
    await setUp(servers)
    const crew = new Crew(await Promise.all([1, 2, 3].map(() => openAt(servers))), 'contended')
    crew.start()
    await crew.progress(10)
    for (const by of [3_600_000, -7_200_000]) {
      shim.jump(by)
      await crew.progress(10)
    }
    expect(await crew.stop()).toEqual(LAWFUL)
    shim.dispose()
  })
})

describe.skipIf(!available('redis'))('servers whose memory is full', () => {
  let servers: Server[]
  beforeEach(
    async () => void (servers = await startServers(3, { args: ['--maxmemory-policy', 'noeviction'] })),
  )
  afterEach(async () => stopAll(servers))

  it.each([
    ['maxmemory', 1, /OOM/],
    ['min-replicas-to-write', 1, /NOREPLICAS/],
  ] as const)(
    'or that refuse writes for another reason (%s) are told of by open, if they are a majority',
    async (...[setting, value, says]) => {
      await setUp(servers)
      const [first, second] = servers as [Server, Server]
      await redisCommand(first, 'CONFIG', 'SET', setting, value)
      await (await openAt(servers)).close()
      await redisCommand(second, 'CONFIG', 'SET', setting, value)
      const opened = openAt(servers)
      await expect(opened).rejects.toThrow(/^The quorum at .* cannot be used: Only 1 of 3 stores can vote/)
      await expect(opened).rejects.toThrow(says)
    },
  )

  it('keep what is held, and let it go', async () => {
    await setUp(servers)
    const store = await openAt(servers, { setUp: 'wait' })
    const ref = { name: 'x', id: 'full.1' }
    // The second one is kept as it came, and not in the form in which a renewal writes it.
    for (const id of ['full.0', 'full.1']) {
      expect(await store.claim(request('x', id), 1_000)).toMatchObject({ kind: 'held' })
      if (id === 'full.0') await store.release({ name: 'x', id }, undefined, 1_000)
    }
    for (const server of servers) await redisCommand(server, 'CONFIG', 'SET', 'maxmemory', 1)
    const renewal = { ...ref, ttl: 1_000, patience: 500 }
    expect(await store.renew([{ ...renewal, tokens: 0 }], 1_000)).toMatchObject([{ kind: 'renewed' }])
    expect(await store.renew([{ ...renewal, tokens: 3 }], 1_000)).toMatchObject([{ kind: 'held', count: 3 }])
    expect(await store.claim(request('y', 'full.2'), 1_000)).toMatchObject({ kind: 'unknown' })
    expect((await store.release(ref, undefined, 1_000)).released).toMatchObject({ kind: 'released' })
    await store.close()
  })
})

describe.skipIf(!available('redis'))('a client whose event loop was blocked', () => {
  it.each(['ioredis', 'redis'] as const)(
    'hears the votes that came meanwhile, through %s',
    async (driver) => {
      const servers = await startServers(3)
      const holdfast = new Holdfast(await openAt(servers, { driver }))
      try {
        for (let at = 0; at < 10; at++) {
          // The loop comes from here to its timers first, and only then to what the servers have said.
          await new Promise((resolve) => void setImmediate(resolve))
          const trying = holdfast.mutex(`busy-${at}`).tryAcquire()
          // Longer than a vote is waited for.
          setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150))
          expect(await trying).not.toBeNull()
        }
      } finally {
        await holdfast.close({ drain: 0 })
        await stopAll(servers)
      }
    },
  )
})
