import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'

import { available, fourLetters, zookeeper } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import type {
  ClaimRequest,
  DowngradeAnswer,
  NameInfo,
  RenewAnswer,
  Store,
  StoreEvent,
} from '../../../src/core/contract.ts'
import { ALL } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/index.ts'
import { ZooKeeper } from '../../../src/stores/zookeeper/client/index.ts'
import { czxidOf, requestRevocation, zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import type { ConnectOptions } from '../../../src/stores/zookeeper/index.ts'
import { TOKENS_PER_NODE } from '../../../src/stores/zookeeper/token.ts'
import { FaultProxy } from 'holdfast/testkit'
import { MAX_SESSION_TIMEOUT } from './kit.ts'

const TIMEOUT = 5000
const writer = { weight: ALL, capacity: ALL }
const reader = { weight: 1, capacity: ALL }

describe.skipIf(!available('zookeeper'))('a write lock that becomes a read lock at ZooKeeper', () => {
  let server: Server
  let made = 0
  const open: { close(): unknown }[] = []
  const kept = <T extends { close(): unknown }>(one: T): T => {
    open.push(one)
    return one
  }
  const at = (): string => `127.0.0.1:${server.port}`
  const store = (options: ConnectOptions = {}, connect = at()): Store =>
    kept(zookeeperStore(connect, { maxSessionTimeout: MAX_SESSION_TIMEOUT, ...options }))
  const client = async (): Promise<ZooKeeper> => {
    const zk = kept(new ZooKeeper(at()))
    await zk.connected()
    return zk
  }
  const name = (): string => `downgrade-${made++}`
  const request = (lock: string, more: Partial<ClaimRequest>): ClaimRequest => ({
    name: lock,
    id: `s.${made++}`,
    weight: 1,
    capacity: 1,
    ttl: 20_000,
    patience: 60_000,
    tokens: 1,
    whenBusy: 'queue',
    owner: 'test',
    ...more,
  })
  const listen = async (to: Store): Promise<StoreEvent[]> => {
    const events: StoreEvent[] = []
    await to.watch('s', (event) => events.push(event), TIMEOUT)
    return events
  }
  const take = async (by: Store, claim: ClaimRequest): Promise<bigint> => {
    const answer = await by.claim(claim, TIMEOUT)
    if (answer.kind !== 'held') throw new Error(answer.kind)
    return answer.token
  }
  const downgrade = async (by: Store, claim: ClaimRequest): Promise<DowngradeAnswer['kind'] | undefined> =>
    (await by.downgrade?.(claim, TIMEOUT))?.kind
  const renew = async (by: Store, claim: ClaimRequest, tokens = 0): Promise<RenewAnswer | undefined> =>
    (await by.renew([{ ...claim, tokens }], TIMEOUT))[0]
  const inspect = async (by: Store, lock: string): Promise<NameInfo> => {
    const info = await by.inspect(lock, TIMEOUT)
    if ('kind' in info) throw info.cause
    return info
  }
  const nodes = async (zk: ZooKeeper, lock: string): Promise<string[]> => {
    await zk.sync()
    return (await zk.getChildren(`/holdfast/${lock}`)).children.sort()
  }
  /** The holder looks after its node from a moment after the grant on. */
  const watched = (path: string): Promise<void> =>
    vi.waitFor(async () => expect(await fourLetters(server, 'wchp')).toContain(path), TIMEOUT)

  beforeAll(async () => void (server = await zookeeper()))
  afterAll(() => server.stop())
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close()
  })

  it('has a reader’s node with the writer’s own number, which says what its tokens are made of', async () => {
    const [own, other, zk] = [store(), store(), await client()]
    const events = await listen(own)
    const claim = request(name(), writer)
    const token = await take(own, claim)
    const [before] = await nodes(zk, claim.name)
    await watched(`/${before}`)
    expect(await downgrade(own, claim)).toBe('downgraded')
    const after = await nodes(zk, claim.name)
    expect(after).toEqual([before?.replace('__WRIT__', '__READ__')])
    const { data, stat } = await zk.getData(`/holdfast/${claim.name}/${after[0]}`)
    expect(JSON.parse(data.toString())).toMatchObject({
      id: claim.id,
      weight: 1,
      czxid: String(czxidOf(token)),
    })
    expect(stat.czxid).toBeGreaterThan(czxidOf(token))
    expect((await inspect(other, claim.name)).holders).toMatchObject([{ id: claim.id, weight: 1, token }])
    // The end of the old node was not taken for its own.
    await watched(`/${after[0]}`)
    expect((await renew(own, claim))?.kind).toBe('renewed')
    expect(events).toEqual([])
  })

  it('never leaves its place empty, nor stands there twice, whenever somebody looks', async () => {
    const [own, zk] = [store(), await client()]
    const lock = name()
    const seen = new Set<number>()
    let looking = true
    const rounds = async (): Promise<void> => {
      for (let round = 0; round < 60; round++) {
        const claim = request(lock, writer)
        await take(own, claim)
        const look = async (): Promise<void> => {
          while (looking) seen.add((await zk.getChildren(`/holdfast/${lock}`)).children.length)
        }
        looking = true
        const watching = look()
        expect(await downgrade(own, claim)).toBe('downgraded')
        looking = false
        await watching
        await own.release(claim, undefined, TIMEOUT)
      }
    }
    await rounds()
    expect([...seen]).toEqual([1])
  })

  it('is none the worse for a renewal in the same moment, before it or after it', async () => {
    const own = store()
    const events = await listen(own)
    const lock = name()
    for (let round = 0; round < 60; round++) {
      const claim = request(lock, writer)
      await take(own, claim)
      // With the connection's packets in every order, and long enough for the watch on the old node.
      if (round % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 8))
      const before = round % 2 === 0 ? renew(own, claim) : undefined
      const [answer, after] = await Promise.all([downgrade(own, claim), renew(own, claim), before])
      expect([answer, after?.kind, (await before)?.kind ?? 'renewed']).toEqual([
        'downgraded',
        'renewed',
        'renewed',
      ])
      expect((await own.release(claim, undefined, TIMEOUT)).released.kind).toBe('released')
    }
    expect(events).toEqual([])
  })

  it('is not taken for removed by the first look after its old node, if that comes too late', async () => {
    const link = kept(await FaultProxy.open(server))
    const own = store({}, `127.0.0.1:${link.port}`)
    const events = await listen(own)
    const lock = name()
    await own.release(request(lock, writer), undefined, TIMEOUT)
    link.set('requests', { latency: 30 })
    for (let round = 0; round < 3; round++) {
      const claim = request(lock, writer)
      await take(own, claim)
      // The holder begins to look after its node while this is on its way.
      expect(await downgrade(own, claim)).toBe('downgraded')
      await renew(own, claim)
      expect((await own.release(claim, undefined, TIMEOUT)).released.kind).toBe('released')
    }
    expect(events).toEqual([])
  })

  it('is found again after its reply got lost: renewed, asked for again, released', async () => {
    const link = kept(await FaultProxy.open(server))
    const [own, zk] = [store({}, `127.0.0.1:${link.port}`), await client()]
    const events = await listen(own)
    const claim = request(name(), writer)
    const token = await take(own, claim)
    const [before] = await nodes(zk, claim.name)
    await watched(`/${before}`)
    const cut = link.cutReply({ match: (chunk) => chunk.includes('__READ__') })
    expect(await downgrade(own, claim)).toBe('unknown')
    await cut
    expect(await nodes(zk, claim.name)).toEqual([before?.replace('__WRIT__', '__READ__')])
    // Nobody has heard of the new node yet, and the old one is gone.
    await vi.waitFor(async () => expect((await renew(own, claim))?.kind).toBe('renewed'), TIMEOUT)
    expect(await downgrade(own, claim)).toBe('downgraded')
    expect((await inspect(own, claim.name)).holders).toMatchObject([{ id: claim.id, weight: 1, token }])
    expect(events).toEqual([])
    expect((await own.release(claim, undefined, TIMEOUT)).released.kind).toBe('released')
    expect(await nodes(zk, claim.name)).toEqual([])
  })

  it.each(['the reply', 'the connection'])(
    'can be released although its fate is unknown: %s was lost',
    async (what) => {
      const link = kept(await FaultProxy.open(server))
      const [own, other, zk] = [store({}, `127.0.0.1:${link.port}`), store(), await client()]
      const claim = request(name(), writer)
      await take(own, claim)
      const cut = what === 'the reply' && link.cutReply({ match: (chunk) => chunk.includes('__READ__') })
      if (cut === false) link.reset()
      expect(await own.downgrade?.(claim, cut === false ? 1 : TIMEOUT)).toMatchObject({ kind: 'unknown' })
      await cut
      await vi.waitFor(async () => {
        const { released } = await own.release(claim, undefined, TIMEOUT)
        expect(released.kind).not.toBe('unknown')
      }, TIMEOUT)
      expect(await nodes(zk, claim.name)).toEqual([])
      await take(other, request(claim.name, { ...writer, whenBusy: 'try' }))
    },
  )

  it('leaves nothing behind when it is released in the same moment', async () => {
    const [own, zk] = [store(), await client()]
    const lock = name()
    for (let round = 0; round < 40; round++) {
      const claim = request(lock, writer)
      await take(own, claim)
      const going = downgrade(own, claim)
      const [{ released }, answer] = await Promise.all([own.release(claim, undefined, TIMEOUT), going])
      expect([released.kind, answer]).toEqual(['released', 'lost'])
      expect(await nodes(zk, lock)).toEqual([])
    }
  })

  it('tells its holder when it is removed by force, and when somebody asks for it', async () => {
    const asked: string[] = []
    const [own, zk] = [store({ onRevocation: (lock) => void asked.push(lock) }), await client()]
    const events = await listen(own)
    const claim = request(name(), writer)
    await take(own, claim)
    await downgrade(own, claim)
    const [node] = await nodes(zk, claim.name)
    await watched(`/${node}`)
    expect(await requestRevocation(zk, claim.name)).toBe(1)
    await vi.waitFor(() => expect(asked).toEqual([claim.name]))
    await watched(`/${node}`)
    await zk.delete(`/holdfast/${claim.name}/${node}`)
    await vi.waitFor(() => expect(events).toEqual([{ kind: 'revoked', name: claim.name, id: claim.id }]))
  })

  it('is lost when the writer’s node was removed before', async () => {
    const [own, zk] = [store(), await client()]
    const events = await listen(own)
    const claim = request(name(), writer)
    await take(own, claim)
    const [node] = await nodes(zk, claim.name)
    const removed = zk.delete(`/holdfast/${claim.name}/${node}`)
    await removed
    expect(await downgrade(own, claim)).toBe('lost')
    expect(events).toEqual([{ kind: 'revoked', name: claim.name, id: claim.id }])
    expect(await nodes(zk, claim.name)).toEqual([])
  })

  it('does not count readers as waiters any more, and hears of the next writer', async () => {
    const [own, other] = [store(), store()]
    const events = await listen(own)
    const claim = request(name(), writer)
    await take(own, claim)
    const beside = request(claim.name, reader)
    await other.claim(beside, TIMEOUT)
    expect(await renew(own, claim)).toEqual({ kind: 'renewed', contended: true })
    await downgrade(own, claim)
    expect(await renew(own, claim)).toEqual({ kind: 'renewed', contended: false })
    events.length = 0
    await other.claim(request(claim.name, writer), TIMEOUT)
    await vi.waitFor(() => expect(events).toEqual([{ kind: 'contended', name: claim.name, id: claim.id }]))
  })

  it('gets new tokens by a reader’s node when those of its own are used up', async () => {
    const [own, other] = [store(), store()]
    const claim = request(name(), { ...writer, tokens: TOKENS_PER_NODE })
    const token = await take(own, claim)
    await downgrade(own, claim)
    const more = await renew(own, claim, 2)
    expect(more?.kind === 'held' && more.token - token).toBeGreaterThanOrEqual(BigInt(TOKENS_PER_NODE))
    const [holder] = (await inspect(other, claim.name)).holders
    expect(holder).toMatchObject({ id: claim.id, weight: 1, token: more?.kind === 'held' && more.token })
    await take(other, request(claim.name, reader))
    expect((await other.claim(request(claim.name, { ...writer, whenBusy: 'try' }), TIMEOUT)).kind).toBe(
      'busy',
    )
  })

  it('is seen by whoever takes the number of a node for an answer', async () => {
    const [own, other] = [store(), store()]
    const lock = name()
    const section = async (by: Store): Promise<void> => {
      const claim = request(lock, writer)
      await take(by, claim)
      await by.release(claim, undefined, TIMEOUT)
    }
    for (let round = 0; round < 3; round++) {
      for (let warm = 0; warm < 3; warm++) await section(own)
      const claim = request(lock, writer)
      await take(other, claim)
      await downgrade(other, claim)
      const [first, second] = [request(lock, writer), request(lock, reader)]
      expect((await own.claim(first, TIMEOUT)).kind).toBe('queued')
      expect((await own.claim(second, TIMEOUT)).kind).toBe('queued')
      await own.release(second, undefined, TIMEOUT)
      await other.release(claim, undefined, TIMEOUT)
      await vi.waitFor(async () => expect((await renew(own, first))?.kind).toBe('renewed'))
      await own.release(first, undefined, TIMEOUT)
      // And its own former reader deceives nobody either.
      const again = request(lock, writer)
      await take(own, again)
      await downgrade(own, again)
      await own.release(again, undefined, TIMEOUT)
      await take(other, request(lock, writer))
      const last = request(lock, { ...writer, whenBusy: 'try' })
      expect((await own.claim(last, TIMEOUT)).kind).toBe('busy')
      const { holders } = await inspect(other, lock)
      for (const { id } of holders) await other.release({ name: lock, id }, undefined, TIMEOUT)
    }
  })

  it('is asked for until it is certain, through a connection that breaks again and again', async () => {
    const link = kept(await FaultProxy.open(server))
    const [near, far] = [
      new Holdfast(store()),
      new Holdfast(store({}, `127.0.0.1:${link.port}`), { ttl: 6000 }),
    ]
    const lock = far.readWriteLock(name())
    const lease = await lock.write.acquire()
    const writing = near.readWriteLock(lock.name).write.acquire()
    for (let cut = 0; cut < 3; cut++)
      link.cutReply({ match: (chunk) => chunk.includes('__READ__') }).catch(() => {})
    await lock.downgrade(lease)
    lease.assertHeld()
    const { holders, waiters } = await near.inspect(lock.name)
    expect([holders.map(({ weight }) => weight), waiters.length]).toEqual([[1], 1])
    expect(await lease.release()).toBe('released')
    await (await writing).release()
    await near.close()
    await far.close()
  })
})
