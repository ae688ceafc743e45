import { Cluster } from 'ioredis'
import { createCluster } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'

import { Holdfast } from 'holdfast'
import type { HoldfastOptions, Store } from 'holdfast'
import type { ClaimRequest, RenewRequest } from 'holdfast/store'
import { openRedisStore, redisStore } from 'holdfast/redis'
import type { OpenRedisOptions } from 'holdfast/redis'

import { available, redisCluster, redisCommand } from '../../../scripts/services.mjs'
import type { RedisCluster, Server } from '../../../scripts/services.mjs'
import { slotOf } from '../../../src/stores/redis/slots.ts'
import { Crew } from './crew.ts'

const DRIVERS = ['ioredis', 'redis'] as const
const CLAIM = {
  weight: 1,
  capacity: 1,
  ttl: 500,
  patience: 500,
  tokens: 1,
  whenBusy: 'try',
  owner: '',
} as const

describe.skipIf(!available('redis-cluster')).each(DRIVERS)('a Cluster, through %s', (driver) => {
  let cluster: RedisCluster
  const opened: Holdfast[] = []
  const hosts = (): string => cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(',')
  const openStore = (): Promise<Store> => openRedisStore(`redis+cluster://${hosts()}`, { driver })
  const open = async (options: HoldfastOptions = {}): Promise<Holdfast> => {
    const holdfast = new Holdfast(await openStore(), { ttl: 10_000, requestTimeout: 500, ...options })
    opened.push(holdfast)
    return holdfast
  }
  /** Which server the slot of a name is at now, by what a server that is up says. */
  const homeOf = async (name: string): Promise<Server> => {
    const slot = slotOf(`hf:{${name}}`)
    const asked = cluster.nodes.find(({ pid }) => pid !== undefined) ?? cluster
    const ranges = (await redisCommand(asked, 'CLUSTER', 'SLOTS')) as [number, number, [string, number]][]
    const port = ranges.find(([from, to]) => from <= slot && slot <= to)?.[2][1]
    return found(cluster.nodes.find((node) => node.port === port))
  }

  beforeAll(
    async () => void (cluster = await redisCluster({ primaries: 3, replicas: 1, nodeTimeout: 1_500 })),
  )
  afterAll(() => cluster.stop())
  afterEach(async () => {
    for (const holdfast of opened.splice(0)) {
      await holdfast.close()
      await holdfast.store.close()
    }
  })

  it('keeps a lock and its queue while their slot moves to another node', async () => {
    const [holder, waiter] = [await open(), await open({ wait: 20_000 })]
    const name = 'moving'
    const lease = await holder.mutex(name).acquire()
    const waiting = waiter.mutex(name).acquire()
    waiting.catch(() => {})
    await expect.poll(async () => (await holder.inspect(name)).waiters.length).toBe(1)

    const from = await homeOf(name)
    const to = found(cluster.primaries.find(({ port }) => port !== from.port))
    await moveSlot(slotOf(`hf:{${name}}`), from, to)
    expect((await homeOf(name)).port).toBe(to.port)

    expect((await waiter.inspect(name)).holders[0]?.token).toBe(lease.token)
    expect(await lease.release()).toBe('released')
    const next = await waiting
    expect(next.token).toBeGreaterThan(lease.token)
    expect(await next.release()).toBe('released')
  })

  /** Of a lock that nobody waits for, two of three keys do not exist: scripts with all of them are refused meanwhile. */
  it.each([
    ['opened', 5_000],
    // One that tries again by itself for longer than there is time.
    ['on a client of the user', 300],
  ])('renews and releases while a slot is on its way: a store %s', async (how, timeout) => {
    const name = `on-its-way-${timeout}`
    const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }))
    const client =
      driver === 'ioredis'
        ? new Cluster(nodes)
        : createCluster({ rootNodes: nodes.map((socket) => ({ socket })) })
    client.on('error', () => {})
    if (driver === 'redis') await client.connect()
    const store = how === 'opened' ? await openStore() : redisStore(client)
    const claim = { ...CLAIM, name, id: 'ann.1', ttl: 60_000 } as const
    await expect.poll(async () => (await store.claim(claim, 5_000)).kind).toBe('held')
    const from = await homeOf(name)
    const to = found(cluster.primaries.find(({ port }) => port !== from.port))
    const slot = slotOf(`hf:{${name}}`)
    await beginToMove(slot, from, to)
    const renewal = { name, id: 'ann.1', ttl: 60_000, patience: 500, tokens: 0 }
    const renewed = async (): Promise<string | undefined> => (await store.renew([renewal], timeout))[0]?.kind
    await expect.poll(renewed, { timeout: 10_000 }).toBe('renewed')
    await redisCommand(from, 'MIGRATE', to.host, to.port, `hf:{${name}}`, 0, 5_000)
    await expect.poll(renewed, { timeout: 10_000 }).toBe('renewed')
    expect(await store.release({ name, id: 'ann.1', uncontended: true }, undefined, 5_000)).toEqual({
      released: { kind: 'released' },
    })
    await endMove(slot, from, to)
    expect(await store.claim({ ...claim, id: 'bob.1' }, 5_000)).toMatchObject({ kind: 'held' })
    await store.withdraw({ name, id: 'bob.1' }, 5_000)
    await store.close()
    await client.disconnect()
  })

  it('renews a lock whose slot goes to another node and comes back, and hears of who waits there', async () => {
    const name = 'there-and-back'
    const [store, other] = [await openStore(), await openStore()]
    const claim = { ...CLAIM, name, id: 'ann.1', ttl: 60_000 } as const
    await expect.poll(async () => (await store.claim(claim, 5_000)).kind).toBe('held')
    const renewal = { name, id: 'ann.1', ttl: 60_000, patience: 500, tokens: 0 }
    const renewed = async (): Promise<unknown> => (await store.renew([renewal], 5_000))[0]
    const kept = async (contended: boolean): Promise<void> => {
      await expect.poll(renewed, { timeout: 10_000 }).toEqual({ kind: 'renewed', contended })
    }
    const home = await homeOf(name)
    const away = found(cluster.primaries.find(({ port }) => port !== home.port))
    const slot = slotOf(`hf:{${name}}`)
    for (const [from, to] of [
      [home, away],
      [away, home],
    ] as const) {
      await beginToMove(slot, from, to)
      // From now on it is doubtful, and renewed in another way.
      await kept(false)
      await redisCommand(from, 'MIGRATE', to.host, to.port, `hf:{${name}}`, 0, 5_000)
      await kept(false)
      await endMove(slot, from, to)
      await kept(false)
    }
    const waiter = { ...claim, id: 'bob.1', patience: 60_000, whenBusy: 'queue' } as const
    await expect.poll(async () => (await other.claim(waiter, 5_000)).kind).toBe('queued')
    await kept(true)
    expect(await store.release({ name, id: 'ann.1' }, undefined, 5_000)).toEqual({
      released: { kind: 'released' },
    })
    expect(await other.claim(waiter, 5_000)).toMatchObject({ kind: 'held' })
    await other.withdraw({ name, id: 'bob.1' }, 5_000)
    await Promise.all([store.close(), other.close()])
  })

  /** After a move there and back that was quicker than what they tell each other: see `endMove`. */
  it('is asked again while two nodes send everybody to each other', async () => {
    const name = 'to-and-fro'
    const store = await openStore()
    const claim = { ...CLAIM, name, id: 'ann.1', ttl: 60_000 } as const
    await expect.poll(async () => (await store.claim(claim, 5_000)).kind).toBe('held')
    const home = await homeOf(name)
    const other = found(cluster.primaries.find(({ port }) => port !== home.port))
    const slot = slotOf(`hf:{${name}}`)
    const give = async (server: Server, to: Server): Promise<unknown> =>
      redisCommand(server, 'CLUSTER', 'SETSLOT', slot, 'NODE', await idOf(to))
    await redisCommand(home, 'DEL', `hf:{${name}}`)
    await give(home, other)
    const lost = await store.claim({ ...claim, id: 'bob.1' }, 5_000)
    await give(home, home)
    expect(lost).toMatchObject({ kind: 'unknown' })
    expect(lost).not.toHaveProperty('retryable')
    expect(String((lost as { cause?: Error }).cause)).not.toContain('redis+cluster')
    await expect.poll(async () => (await store.claim({ ...claim, id: 'bob.1' }, 5_000)).kind).toBe('held')
    await store.withdraw({ name, id: 'bob.1' }, 5_000)
    await store.close()
  })

  /** Who gave up waiting is refused for a minute, and that is written down: then there are two of the three keys. */
  it('renews a lock that somebody stopped waiting for while its slot is on its way', async () => {
    const name = 'given-up'
    const store = await openStore()
    const claim = { ...CLAIM, name, id: 'ann.1', ttl: 60_000 } as const
    await expect.poll(async () => (await store.claim(claim, 5_000)).kind).toBe('held')
    const waiter = { ...claim, id: 'bob.1', patience: 60_000, whenBusy: 'queue' } as const
    expect(await store.claim(waiter, 5_000)).toMatchObject({ kind: 'queued' })
    await store.withdraw({ name, id: 'bob.1' }, 5_000)
    const from = await homeOf(name)
    const to = found(cluster.primaries.find(({ port }) => port !== from.port))
    const slot = slotOf(`hf:{${name}}`)
    const renewal = { name, id: 'ann.1', ttl: 120_000, patience: 500, tokens: 0 }
    const renewed = async (): Promise<unknown> => (await store.renew([renewal], 5_000))[0]
    const left = async (server: Server): Promise<number> => {
      const ms = Number(await redisCommand(server, 'PTTL', `hf:{${name}}`))
      return ms - 86_400_000
    }
    await beginToMove(slot, from, to)
    await expect.poll(renewed, { timeout: 10_000 }).toEqual({ kind: 'renewed', contended: false })
    expect(await left(from)).toBeGreaterThan(60_000)
    await redisCommand(from, 'MIGRATE', to.host, to.port, `hf:{${name}}`, 0, 5_000)
    await expect.poll(renewed, { timeout: 10_000 }).toEqual({ kind: 'renewed', contended: false })
    await redisCommand(from, 'MIGRATE', to.host, to.port, `hf:{${name}}:i`, 0, 5_000)
    await endMove(slot, from, to)
    // Also while it is still taken for one that moves.
    expect(await store.claim({ ...waiter, id: 'bob.2' }, 5_000)).toMatchObject({ kind: 'queued' })
    await expect.poll(renewed, { timeout: 10_000 }).toEqual({ kind: 'renewed', contended: true })
    expect(await store.release({ name, id: 'ann.1' }, undefined, 5_000)).toEqual({
      released: { kind: 'released' },
    })
    expect(await store.renew([renewal], 5_000)).toEqual([{ kind: 'lost' }])
    expect(await store.claim({ ...waiter, id: 'bob.2' }, 5_000)).toMatchObject({ kind: 'held' })
    await store.withdraw({ name, id: 'bob.2' }, 5_000)
    await store.close()
  })

  it('shows who holds a lock whose slot is on its way, and lists it', async () => {
    const name = 'shown-on-its-way'
    const store = await openStore()
    const claim = { ...CLAIM, name, id: 'ann.1', ttl: 60_000 } as const
    await expect.poll(async () => (await store.claim(claim, 5_000)).kind).toBe('held')
    const from = await homeOf(name)
    const to = found(cluster.primaries.find(({ port }) => port !== from.port))
    const slot = slotOf(`hf:{${name}}`)
    const holders = async (): Promise<unknown> => {
      const answer = await store.inspect(name, 5_000)
      return 'kind' in answer ? answer.cause : answer.holders.map(({ id }) => id)
    }
    const listed = async (): Promise<unknown> => {
      const answer = await store.list({ prefix: name }, 5_000)
      return 'kind' in answer ? answer.cause : answer.names
    }
    await beginToMove(slot, from, to)
    for (const where of ['here', 'there']) {
      if (where === 'there') await redisCommand(from, 'MIGRATE', to.host, to.port, `hf:{${name}}`, 0, 5_000)
      expect(await holders()).toEqual(['ann.1'])
      expect(await listed()).toEqual([name])
    }
    await endMove(slot, from, to)
    await store.withdraw({ name, id: 'ann.1' }, 5_000)
    await store.close()
  })

  it('answers for the locks at healthy nodes while another node stands still', async () => {
    const store = await openStore()
    const names = cluster.primaries.map((_, index) => `node-${index}`)
    const homes = await Promise.all(namesOn(names, homeOf))
    const requests = homes.map(({ name }, index): RenewRequest => {
      return { name, id: `session.${index}`, ttl: 20_000, patience: 1_000, tokens: 0 }
    })
    for (const { name, id, ttl, patience } of requests) {
      const claim = {
        name,
        id,
        ttl,
        patience,
        tokens: 1,
        weight: 1,
        capacity: 1,
        whenBusy: 'try',
        owner: '',
      } as const
      expect(await store.claim(claim, 2_000)).toMatchObject({ kind: 'held' })
    }
    const [frozen] = homes
    await frozen?.home.pause()
    const began = performance.now()
    const answers = await store.renew(requests, 400)
    expect(performance.now() - began).toBeLessThan(5_000)
    expect(answers.map(({ kind }) => kind)).toEqual(
      homes.map(({ home }) => (home.port === frozen?.home.port ? 'unknown' : 'renewed')),
    )
    await frozen?.home.resume()
    await store.close()
  })

  it('goes on after the primary of a lock died, and its tokens grow', async () => {
    const name = 'failing-over'
    await expect.poll(async () => (await homeOf(name)).pid).toBeDefined()
    const crew = new Crew(await Promise.all([1, 2, 3].map(openStore)), name)
    crew.start()
    await crew.progress(20)
    const old = await homeOf(name)
    await old.kill('SIGKILL')
    await crew.progress(20, 30_000)
    expect((await homeOf(name)).port).not.toBe(old.port)
    expect((await crew.stop()).tokens).toEqual([])
    await old.restart()
  })

  it('never asks a replica, whatever the client likes to read from', async () => {
    const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }))
    const client =
      driver === 'ioredis'
        ? new Cluster(nodes, { scaleReads: 'slave' })
        : createCluster({ rootNodes: nodes.map((socket) => ({ socket })), useReplicas: true })
    client.on('error', () => {})
    if (driver === 'redis') await client.connect()
    const holdfast = new Holdfast(redisStore(client), { ttl: 5_000 })
    for (let round = 0; round < 20; round++) {
      const lease = await holdfast.mutex(`read-${round}`).acquire()
      // A replica would still show nobody now and then.
      expect((await holdfast.inspect(`read-${round}`)).holders.length).toBe(1)
      expect(await lease.release()).toBe('released')
      expect((await holdfast.inspect(`read-${round}`)).holders.length).toBe(0)
    }
    await holdfast.close()
    await holdfast.store.close()
    await client.disconnect()
  })

  async function moveSlot(slot: number, from: Server, to: Server): Promise<void> {
    await beginToMove(slot, from, to)
    const keys = (await redisCommand(from, 'CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[]
    expect(keys.length).toBeGreaterThan(0)
    await redisCommand(from, 'MIGRATE', to.host, to.port, '', 0, 5_000, 'KEYS', ...keys)
    await endMove(slot, from, to)
  }

  const idOf = async (server: Server): Promise<string> =>
    String(await redisCommand(server, 'CLUSTER', 'MYID'))

  async function beginToMove(slot: number, from: Server, to: Server): Promise<void> {
    await redisCommand(to, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', await idOf(from))
    await redisCommand(from, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', await idOf(to))
  }

  /**
   * When it is over all have heard of it, also by what the nodes tell each other. A node that gets the slot back before it has
   * heard that it was gone believes the news when they come, and gives the slot up: then both say that the other one has it.
   */
  async function endMove(slot: number, from: Server, to: Server): Promise<void> {
    for (const server of [to, from])
      await redisCommand(server, 'CLUSTER', 'SETSLOT', slot, 'NODE', await idOf(to))
    const epochs = async (): Promise<unknown> => {
      const views = await Promise.all(
        cluster.primaries.map(async (server) => {
          const id = await idOf(to)
          const nodes = String(await redisCommand(server, 'CLUSTER', 'NODES'))
          return nodes
            .split('\n')
            .find((line) => line.startsWith(id))
            ?.split(' ')[6]
        }),
      )
      return new Set(views).size
    }
    await expect.poll(epochs, { timeout: 10_000 }).toBe(1)
  }
})

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('there is no such server')
  return value
}

/** For each, a name of that kind whose home is another server than those of the others. */
function namesOn(
  names: readonly string[],
  homeOf: (name: string) => Promise<Server>,
): Promise<{ name: string; home: Server }>[] {
  const taken = new Set<number>()
  let before: Promise<unknown> = Promise.resolve()
  return names.map((kind) => {
    const found = before.then(async () => {
      for (let attempt = 0; ; attempt++) {
        const name = `${kind}-${attempt}`
        const home = await homeOf(name)
        if (taken.has(home.port)) continue
        taken.add(home.port)
        return { name, home }
      }
    })
    before = found
    return found
  })
}

describe.skipIf(!available('redis-cluster')).each(DRIVERS)(
  'a Cluster whose primaries change, through %s',
  (driver) => {
    let cluster: RedisCluster
    const opened: Holdfast[] = []
    const open = async (options: HoldfastOptions, redisOptions: OpenRedisOptions = {}): Promise<Holdfast> => {
      const hosts = cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(',')
      const store = await openRedisStore(`redis+cluster://${hosts}`, { driver, ...redisOptions })
      const holdfast = new Holdfast(store, options)
      opened.push(holdfast)
      return holdfast
    }
    beforeAll(
      async () => void (cluster = await redisCluster({ primaries: 3, replicas: 1, nodeTimeout: 1_500 })),
    )
    afterAll(() => cluster.stop())
    afterEach(async () => {
      for (const holdfast of opened.splice(0)) {
        await holdfast.close()
        await holdfast.store.close()
      }
    })

    it('confirms grants by replicas also after planned failovers and while nobody has told the driver', async () => {
      const holdfast = await open({ ttl: 3_000, wait: 10_000 }, { replicas: 1, replicaTimeout: 1_000 })
      const lease = await holdfast.mutex('kept').acquire()
      // One after the other: if two of them ask for votes at once, one gets none, and its primary lets nobody write for 5 s.
      for (const replica of await replicasOf(cluster.nodes)) await promote(replica, cluster.nodes)
      const until = performance.now() + 4_000
      for (let i = 0; performance.now() < until; i++) {
        const other = await holdfast.mutex(`other ${i % 10}`).acquire()
        await other.release()
        await new Promise((resolve) => void setTimeout(resolve, 50))
      }
      expect(lease.held).toBe(true)
      expect(await lease.release()).toBe('released')
    })

    it('goes on after a failover and the way back, through a client that reads from replicas', async () => {
      const name = 'back-again'
      const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }))
      /** The primary of the name, and its replica once clients are told of that. */
      const homes = async (): Promise<Server[]> => {
        const ranges = (await redisCommand(cluster, 'CLUSTER', 'SLOTS')) as [
          number,
          number,
          ...[string, number][],
        ][]
        const [, , ...places] = found(
          ranges.find(([from, to]) => from <= slotOf(`{${name}}`) && slotOf(`{${name}}`) <= to),
        )
        return places.map(([, port]) => found(cluster.nodes.find((node) => node.port === port)))
      }
      // They are told when it has been written to.
      const written = async (): Promise<number> => {
        const [primary, ...replicas] = await homes()
        await redisCommand(found(primary), 'SET', `{${name}}`, '1').catch(() => {})
        return replicas.length
      }
      await expect.poll(written, { timeout: 10_000 }).toBe(1)
      const client =
        driver === 'ioredis'
          ? new Cluster(nodes, { scaleReads: 'all' })
          : createCluster({ rootNodes: nodes.map((socket) => ({ socket })), useReplicas: true })
      client.on('error', () => {})
      if (driver === 'redis') await client.connect()
      const store = redisStore(client)
      // The user's own reads: for those there is a connection to the replica, which stays when that is promoted.
      const reads = async (): Promise<boolean> => {
        await client.get(`{${name}}`)
        const [, replica] = await homes()
        return replica !== undefined && /flags=r /.test(String(await redisCommand(replica, 'CLIENT', 'LIST')))
      }
      await expect.poll(reads, { timeout: 10_000 }).toBe(true)
      const held = async (id: string): Promise<string> =>
        (await store.claim({ ...CLAIM, name, id }, 2_000)).kind
      for (const round of [1, 2]) {
        await expect.poll(async () => (await homes()).length, { timeout: 10_000 }).toBe(2)
        const [, replica] = await homes()
        await promote(found(replica), cluster.nodes)
        await expect.poll(() => held(`ann.${round}`), { timeout: 10_000 }).toBe('held')
        // By a script: a plain command would teach the client.
        await store.withdraw({ name, id: `ann.${round}` }, 2_000)
      }
      await store.close()
      await client.disconnect()
    })

    it('shows every name of a list, whichever primaries change between its pages', async () => {
      const holdfast = await open({ ttl: 60_000 })
      const names = Array.from({ length: 60 }, (_, i) => `listed ${i}`)
      const leases = await Promise.all(names.map((name) => holdfast.mutex(name).acquire()))
      const shown = new Set<string>()
      let cursor: string | undefined
      for (let page = 0; page === 0 || cursor !== undefined; page++) {
        const query = { prefix: 'listed', limit: 7, ...(cursor === undefined ? {} : { cursor }) }
        const answer = await holdfast.store.list(query, 5_000)
        if ('kind' in answer) throw answer.cause
        for (const name of answer.names) shown.add(name)
        ;({ cursor } = answer)
        // The primary that is being looked through, and another one, are replaced.
        if (page === 1 || page === 4) {
          const replicas = await replicasOf(cluster.nodes)
          for (const replica of replicas.slice(0, 2)) await promote(replica, cluster.nodes)
          // Until the driver has learnt of it.
          for (const lease of leases) await holdfast.inspect(lease.name)
          await new Promise((resolve) => void setTimeout(resolve, 500))
        }
      }
      expect([...shown].toSorted()).toEqual(names.toSorted())
      for (const lease of leases) await lease.release()
    })
  },
)

// A Cluster of its own: its third primary is not told of the slot, and may refuse its vote in a failover because of that.
describe.skipIf(!available('redis-cluster')).each(DRIVERS)(
  'a Cluster whose slots move, through %s',
  (driver) => {
    it('believes no replicas of the node that a slot has left', async () => {
      const cluster = await redisCluster({ primaries: 3, replicas: 1, nodeTimeout: 1_500 })
      onTestFinished(() => cluster.stop())
      const hosts = cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(',')
      const store = await openRedisStore(`redis+cluster://${hosts}`, {
        driver,
        replicas: 1,
        // Enough for a replica on a busy machine.
        replicaTimeout: 1_000,
      })
      onTestFinished(() => store.close())
      const [from, to] = cluster.primaries as [Server, Server]
      const [, , [follower]] = (await redisCommand(to, 'ROLE')) as [string, number, [[string, string]]]
      const frozen = found(cluster.nodes.find(({ port }) => port === Number(follower[1])))
      const id = String(await redisCommand(to, 'CLUSTER', 'MYID'))
      const [name, ...others] = Array.from({ length: 30 }, (_, i) => `n${i}`).sort(
        (a, b) => slotOf(`{${a}}`) - slotOf(`{${b}}`),
      ) as [string, ...string[]]
      const request = (of: string): ClaimRequest => ({ ...CLAIM, name: of, id: `${of}.1` })
      // Until there are connections to all nodes.
      for (const other of others) await store.claim(request(other), 2_000)
      expect(await store.claim(request(others[0] ?? ''), 2_000)).toMatchObject({ kind: 'held' })
      for (const server of [to, from])
        await redisCommand(server, 'CLUSTER', 'SETSLOT', slotOf(`{${name}}`), 'NODE', id)
      await frozen.pause()
      const answer = await store.claim(request(name), 2_000)
      await frozen.resume()
      expect(answer).toMatchObject({ kind: 'unknown' })
      await expect
        .poll(() => store.claim(request(name), 2_000), { timeout: 5_000 })
        .toMatchObject({ kind: 'held' })
    })
  },
)

describe.skipIf(!available('redis-cluster'))('a Cluster, through ioredis with enableAutoPipelining', () => {
  it('waits for slots that have moved, of commands that the driver sent together', async () => {
    const cluster = await redisCluster({ primaries: 3 })
    onTestFinished(() => cluster.stop())
    const client = new Cluster(
      cluster.nodes.map(({ host, port }) => ({ host, port })),
      { enableAutoPipelining: true },
    )
    onTestFinished(() => client.disconnect())
    const holdfast = new Holdfast(redisStore(client), { wait: 5_000 })
    const [from, to] = cluster.primaries as [Server, Server]
    const id = String(await redisCommand(to, 'CLUSTER', 'MYID'))
    const names = Array.from({ length: 30 }, (_, i) => `n${i}`)
    const here = names.filter((name) => slotOf(`{${name}}`) < 5_461)
    // Until there are connections. A slot with something in it cannot be given away like that.
    await Promise.all(
      names.filter((name) => !here.includes(name)).map((name) => holdfast.mutex(name).run(() => {})),
    )
    await holdfast.mutex(here[2] ?? '').run(() => {})
    // Two of them, and the others stay.
    for (const name of here.slice(0, 2))
      for (const server of [to, from])
        await redisCommand(server, 'CLUSTER', 'SETSLOT', slotOf(`{${name}}`), 'NODE', id)
    const leases = await Promise.all(here.map((name) => holdfast.mutex(name).acquire()))
    expect(leases.map(({ held }) => held)).toEqual(here.map(() => true))
    await Promise.all(leases.map((lease) => lease.release()))
    await holdfast.close()
    await holdfast.store.close()
  })
})

async function replicasOf(nodes: readonly Server[]): Promise<Server[]> {
  const roles = await Promise.all(nodes.map((node) => redisCommand(node, 'ROLE') as Promise<[string]>))
  return nodes.filter((_, at) => roles[at]?.[0] !== 'master')
}

/** Makes a replica the primary, for all that know of it. The Cluster may be busy with another one, and then forgets it. */
async function promote(replica: Server, nodes: readonly Server[]): Promise<void> {
  const id = String(await redisCommand(replica, 'CLUSTER', 'MYID'))
  const isPrimary = async (): Promise<boolean> => {
    const views = await Promise.all(nodes.map((node) => redisCommand(node, 'CLUSTER', 'NODES')))
    return views.every((view) => new RegExp(`^${id} \\S+ \\S*master`, 'm').test(String(view)))
  }
  for (let tries = 0; tries < 20 && !(await isPrimary()); tries++) {
    await redisCommand(replica, 'CLUSTER', 'FAILOVER').catch(() => {})
    for (let looks = 0; looks < 50 && !(await isPrimary()); looks++)
      await new Promise((resolve) => void setTimeout(resolve, 20))
  }
  expect(await isPrimary()).toBe(true)
}
