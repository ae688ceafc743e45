import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'

import { available, fourLetters, zookeeper } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import type { ClaimRequest, Store, StoreEvent } from '../../../src/core/contract.ts'
import { ALL } from '../../../src/core/contract.ts'
import {
  CREATOR_ACL,
  PERMISSIONS,
  ZooKeeper,
  ZooKeeperError,
} from '../../../src/stores/zookeeper/client/index.ts'
import { OPCODES } from '../../../src/stores/zookeeper/client/records.ts'
import { openZooKeeperStore } from '../../../src/stores/zookeeper/open.ts'
import { czxidOf, requestRevocation, zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import type { ConnectOptions } from '../../../src/stores/zookeeper/index.ts'
import { TOKENS_PER_NODE } from '../../../src/stores/zookeeper/token.ts'
import { Holdfast, open as openHoldfast } from '../../../src/index.ts'
import { FaultProxy } from 'holdfast/testkit'
import { leftovers, MAX_SESSION_TIMEOUT } from './kit.ts'
import { Wiretap } from './wiretap.ts'

const TIMEOUT = 5000

describe.skipIf(!available('zookeeper'))('the ZooKeeper store', () => {
  let server: Server
  let names = 0
  const open: { close(): unknown }[] = []
  const kept = <T extends { close(): unknown }>(one: T): T => {
    open.push(one)
    return one
  }
  const name = (): string => `store-${names++}`
  const at = (): string => `127.0.0.1:${server.port}`
  const store = (options: ConnectOptions = {}, connect = at()): Store =>
    kept(zookeeperStore(connect, { maxSessionTimeout: MAX_SESSION_TIMEOUT, ...options }))
  const client = async (connect = at()): Promise<ZooKeeper> => {
    const zk = kept(new ZooKeeper(connect))
    await zk.connected()
    return zk
  }
  let claims = 0
  const request = (lock: string, more: Partial<ClaimRequest> = {}): ClaimRequest => ({
    name: lock,
    id: `s.${claims++}`,
    weight: 1,
    capacity: 1,
    ttl: 5000,
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
  const mntr = async (key: string): Promise<number> =>
    Number(new RegExp(`${key}\\t(\\d+)`).exec(await fourLetters(server, 'mntr'))?.[1])

  it('goes on with a server that has lost its data, once the old session cannot stand any more', async () => {
    const first = await zookeeper()
    const holdfast = kept(
      new Holdfast(
        kept(zookeeperStore(`127.0.0.1:${first.port}`, { maxSessionTimeout: MAX_SESSION_TIMEOUT })),
        {
          ttl: 2000,
        },
      ),
    )
    for (let round = 0; round < 20; round++) await holdfast.mutex('lost').run(() => {})
    await first.stop()
    const second = await zookeeper({ port: first.port })
    const lease = await holdfast.mutex('lost').acquire({ wait: 30_000 })
    expect(await lease.release()).toBe('released')
    await holdfast.close()
    await second.stop()
  }, 60_000)

  beforeAll(async () => void (server = await zookeeper({ java: ['-Dznode.container.checkIntervalMs=300'] })))
  afterAll(() => server.stop())
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) {
      // What nobody can be told of stays until its time is over, and would be counted by the next test.
      if ('watch' in one) await listen(one as unknown as Store)
      await one.close()
    }
  })

  it('never lets a mutex and a semaphore of one name in together', async () => {
    const [one, other] = [store(), store()]
    // Both are connected, so that they are equally quick.
    await Promise.all([one.inspect(name(), TIMEOUT), other.inspect(name(), TIMEOUT)])
    const grants: number[] = []
    for (let round = 0; round < 150; round++) {
      const lock = name()
      const [mutex, permit] = [request(lock), request(lock, { capacity: 3 })]
      const answers = await Promise.all([one.claim(mutex, TIMEOUT), other.claim(permit, TIMEOUT)])
      grants.push(answers.filter(({ kind }) => kind === 'held').length)
      expect(answers.filter(({ kind }) => kind !== 'held' && kind !== 'mismatch')).toEqual([])
      await Promise.all([one.release(mutex, undefined, TIMEOUT), other.release(permit, undefined, TIMEOUT)])
    }
    expect(Math.max(...grants)).toBe(1)
  })

  it('opens few sessions, whatever ttls a program makes up', async () => {
    const holdfast = new Holdfast(store({ maxSessionTimeout: 40_000 }), { ttl: 5000 })
    const before = await mntr('zk_num_alive_connections')
    for (let index = 0; index < 30; index++) {
      const lease = await holdfast.mutex('lengths').acquire({ ttl: 5000 + 20 * index, wait: 5000 })
      await lease.release()
    }
    expect((await mntr('zk_num_alive_connections')) - before).toBeLessThanOrEqual(9)
    await holdfast.close()
  })

  it('keeps what a user’s callback throws from everything else', async () => {
    const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    try {
      const asked: string[] = []
      const onRevocation = (lock: string): void => {
        asked.push(lock)
        throw new Error('a callback')
      }
      const lock = name()
      const holdfast = new Holdfast(store({ onRevocation }), { ttl: 5000 })
      const lease = await holdfast.mutex(lock).acquire()
      const zk = await client()
      await expect.poll(() => requestRevocation(zk, lock).then(() => asked.length)).toBeGreaterThan(0)
      expect(lease.held).toBe(true)
      await lease.release()
      await holdfast.close()

      const states: string[] = []
      const shy = kept(new ZooKeeper(at()))
      const quiet = shy.onState(() => {
        throw new Error('a listener')
      })
      shy.onState((state) => states.push(state))
      await shy.connected()
      expect(states).toContain('connected')
      const path = `/throwing-${names++}`
      await shy.create(path)
      const heard: string[] = []
      await shy.getData(path, {
        watch: () => {
          throw new Error('a watcher')
        },
      })
      await shy.getData(path, { watch: ({ type }) => heard.push(type) })
      await shy.setData(path, 'x')
      await expect.poll(() => heard).toHaveLength(1)
      expect(states.at(-1)).toBe('connected')
      expect(warnings.mock.calls.length).toBeGreaterThanOrEqual(3)
      quiet()
    } finally {
      warnings.mockRestore()
    }
  })

  it('does not take back a watch that somebody else in the process is just asking for', async () => {
    const zk = await client()
    const path = `/watched-${names++}`
    await zk.create(path)
    const given = (): void => {}
    const heard: string[] = []
    await zk.getData(path, { watch: given })
    const asking = zk.getData(path, { watch: ({ type }) => heard.push(type) })
    zk.unwatch(path, 'data', given)
    await asking
    await zk.delete(path)
    await expect.poll(() => heard, { timeout: 5000 }).toHaveLength(1)
  })

  it('writes the nodes that Curator would write', async () => {
    const [own, zk] = [store(), await client()]
    const [mutex, rw, semaphore] = [name(), name(), name()]
    const held = await own.claim(request(mutex), TIMEOUT)
    await own.claim(request(rw, { capacity: ALL, weight: ALL }), TIMEOUT)
    await own.claim(request(rw, { capacity: ALL }), TIMEOUT)
    await own.claim(request(semaphore, { capacity: 3, weight: 2 }), TIMEOUT)
    const uuid = '_c_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
    const children = async (path: string): Promise<string[]> =>
      (await zk.getChildren(`/holdfast/${path}`)).children.sort()
    const [node] = await children(mutex)
    expect(node).toMatch(new RegExp(`^${uuid}-lock-0000000000$`))
    const both = (await children(rw)).map((child) => child.slice(-18)).sort()
    expect(both).toEqual(['__READ__0000000001', '__WRIT__0000000000'])
    await own.claim(request(semaphore, { capacity: 3, weight: 3 }), TIMEOUT)
    expect((await children(semaphore)).sort()).toEqual(['leases', 'locks'])
    const leases = await children(`${semaphore}/leases`)
    // Two that are held, and three of the one who stands at the gate until there is room.
    expect(leases).toHaveLength(5)
    expect(leases[0]).toMatch(new RegExp(`^${uuid}-lease-\\d{10}$`))
    const [gate, ...others] = await children(`${semaphore}/locks`)
    expect(others).toEqual([])
    expect(gate).toMatch(new RegExp(`^${uuid}-lock-\\d{10}$`))
    const { stat } = await zk.getData(`/holdfast/${mutex}/${node}`)
    expect(held.kind === 'held' && czxidOf(held.token)).toBe(stat.czxid)
    // What docs/stores/zookeeper.md says of semaphores of one: Java's stand elsewhere.
    const one = name()
    await kept(new Holdfast(store())).semaphore(one, 1).acquire()
    expect(await children(one)).toEqual([expect.stringMatching(new RegExp(`^${uuid}-lock-0000000000$`))])
  })

  it('takes a free lock with one round trip, and gives it up with one', async () => {
    const tap = kept(await Wiretap.open(server))
    const [own, zk] = [store({}, `127.0.0.1:${tap.port}`), await client()]
    const lock = name()
    // Not as a container, which the server would remove by itself in between.
    await zk.createPath(`/holdfast/${lock}`, { mode: 'persistent' })
    const warm = request(lock)
    await own.claim(warm, TIMEOUT)
    await own.release(warm, undefined, TIMEOUT)
    const flights = async (work: () => unknown): Promise<number> => {
      tap.reset()
      await work()
      return tap.flights
    }
    const again = request(lock)
    expect(await flights(() => own.claim(again, TIMEOUT))).toBe(1)
    expect(await flights(() => own.release(again, undefined, TIMEOUT))).toBe(1)
    // A name that nobody has used: its directory is made in the same flight.
    expect(await flights(() => own.claim(request(name()), TIMEOUT))).toBe(1)
  })

  it('sends nothing but its two writes where nobody else comes, and sees whoever comes all the same', async () => {
    const tap = kept(await Wiretap.open(server))
    const [own, other, zk] = [store({}, `127.0.0.1:${tap.port}`), store(), await client()]
    const lock = name()
    // Not as a container, which the server would remove by itself between two sections.
    await zk.createPath(`/holdfast/${lock}`, { mode: 'persistent' })
    const section = async (by: Store): Promise<void> => {
      const claim = request(lock)
      expect(await by.claim(claim, TIMEOUT)).toMatchObject({ kind: 'held', contended: false })
      await by.release(claim, undefined, TIMEOUT)
    }
    for (let warm = 0; warm < 3; warm++) await section(own)
    tap.reset()
    for (let round = 0; round < 50; round++) await section(own)
    const { create2, delete: remove } = OPCODES
    expect(tap.requests).toEqual(Array.from({ length: 50 }, () => [create2, remove]).flat())
    const stranger = request(lock)
    await other.claim(stranger, TIMEOUT)
    const waiting = request(lock)
    expect(await own.claim(waiting, TIMEOUT)).toEqual({ kind: 'queued' })
    await other.release(stranger, undefined, TIMEOUT)
    await vi.waitFor(async () => {
      const [answer] = await own.renew([{ ...waiting, tokens: 0 }], TIMEOUT)
      expect(answer?.kind).toBe('renewed')
    })
    await own.release(waiting, undefined, TIMEOUT)
    // Somebody who came and went is seen too, and so is what was there before.
    for (let warm = 0; warm < 3; warm++) await section(own)
    await section(other)
    await section(own)
    await zk.createPath(`/holdfast/${lock}/leases`)
    await section(own)
  })

  it('is not deceived by a directory that was made anew and has come to the same number', async () => {
    const [own, other, zk] = [store(), store(), await client()]
    const lock = name()
    const section = async (by: Store): Promise<void> => {
      const claim = request(lock)
      expect((await by.claim(claim, TIMEOUT)).kind).toBe('held')
      await by.release(claim, undefined, TIMEOUT)
    }
    // Not as a container, which the server would remove by itself between two sections.
    await zk.createPath(`/holdfast/${lock}`, { mode: 'persistent' })
    // The last of them has the number 4.
    for (let round = 0; round < 5; round++) await section(own)
    await zk.delete(`/holdfast/${lock}`)
    await zk.create(`/holdfast/${lock}`)
    for (let round = 0; round < 4; round++) await section(other)
    expect((await other.claim(request(lock), TIMEOUT)).kind).toBe('held')
    expect((await zk.getChildren(`/holdfast/${lock}`)).children[0]).toMatch(/lock-0000000004$/)
    expect(await own.claim(request(lock), TIMEOUT)).toEqual({ kind: 'queued' })
  })

  it('takes locks whose writes share a transaction with one that is refused', async () => {
    const zk = await client()
    const own = kept(zookeeperStore(zk, { maxSessionTimeout: MAX_SESSION_TIMEOUT }))
    const refused = (): Promise<unknown> =>
      zk.write({ kind: 'delete', path: '/nothing' }).catch(() => undefined)
    const names = [name(), name(), name()]
    for (let round = 0; round < 4; round++) {
      const claims = names.map((lock) => request(lock))
      const bad = refused()
      const answers = await Promise.all(claims.map(async (claim) => own.claim(claim, TIMEOUT)))
      for (const answer of answers) expect(answer).toMatchObject({ kind: 'held', contended: false })
      await Promise.all([
        bad,
        refused(),
        ...claims.map(async (claim) => own.release(claim, undefined, TIMEOUT)),
      ])
      // Given up while it is under way: what is sent again must not stay behind.
      const late = names.map((lock) => request(lock))
      const entering = [refused(), ...late.map(async (claim) => own.claim(claim, TIMEOUT))]
      await Promise.all([...late.map(async (claim) => own.withdraw(claim, TIMEOUT)), ...entering])
      expect((await leftovers(at())).filter((path) => names.some((lock) => path.includes(lock)))).toEqual([])
    }
  })

  it('gives tokens of their own to claims of one name that come in one turn', async () => {
    const own = store()
    const lock = name()
    const events = await listen(own)
    // By now it takes the number of a node for an answer, and sends nothing that would keep the writes apart.
    for (let warm = 0; warm < 3; warm++) {
      const claim = request(lock)
      await own.claim(claim, TIMEOUT)
      await own.release(claim, undefined, TIMEOUT)
    }
    const claims = Array.from({ length: 5 }, () => request(lock))
    const [first] = await Promise.all(claims.map(async (claim) => own.claim(claim, TIMEOUT)))
    const tokens = [first?.kind === 'held' ? first.token : 0n]
    const granted = (): bigint[] => events.flatMap((event) => (event.kind === 'granted' ? [event.token] : []))
    for (const [index, claim] of claims.slice(0, 4).entries()) {
      await own.release(claim, undefined, TIMEOUT)
      await vi.waitFor(() => expect(granted()).toHaveLength(index + 1))
    }
    tokens.push(...granted())
    for (const [index, token] of tokens.slice(1).entries())
      expect(token).toBeGreaterThan(tokens[index] as bigint)
  })

  it('keeps the place of a waiter that goes on asking while no server can be reached', async () => {
    const link = kept(await FaultProxy.open(server))
    const [own, other] = [store({}, `127.0.0.1:${link.port}`), store()]
    const [holder, waiter] = [request(name()), request('', { patience: 300 })]
    const waiting = { ...waiter, name: holder.name }
    await other.claim(holder, TIMEOUT)
    expect(await own.claim(waiting, TIMEOUT)).toEqual({ kind: 'queued' })
    await link.refuse()
    link.reset()
    const until = performance.now() + 1000
    while (performance.now() < until) {
      const [answer] = await own.renew([{ ...waiting, tokens: 0 }], 50)
      expect(answer?.kind).toBe('unknown')
    }
    await link.accept()
    await vi.waitFor(async () => {
      expect(await own.renew([{ ...waiting, tokens: 0 }], 200)).toEqual([{ kind: 'queued' }])
    }, TIMEOUT)
    expect((await leftovers(at())).filter((path) => path.includes(holder.name))).toHaveLength(2)
  })

  it.each([1, 3])(
    'does not give a claim up while it is asked for, however long that takes (capacity %i)',
    async (capacity) => {
      const link = kept(await FaultProxy.open(server))
      const own = store({}, `127.0.0.1:${link.port}`)
      await own.claim(request(name()), TIMEOUT)
      link.set('replies', { latency: 150 })
      const lock = name()
      const holder = request(lock, { capacity, weight: capacity, patience: 50 })
      expect(await own.claim(holder, TIMEOUT)).toMatchObject({ kind: 'held' })
      const waiter = request(lock, { capacity, patience: 50 })
      expect(await own.claim(waiter, TIMEOUT)).toEqual({ kind: 'queued' })
      // Its patience has begun with the answer, and is over soon.
      link.heal()
      await vi.waitFor(async () => {
        const left = (await leftovers(at())).filter((path) => path.includes(`/${lock}/`))
        expect(left).toHaveLength(capacity)
      }, TIMEOUT)
    },
  )

  it('counts no grant from a later request than the one that it rests on', async () => {
    const link = kept(await FaultProxy.open(server))
    const own = store({}, `127.0.0.1:${link.port}`)
    await own.claim(request(name()), TIMEOUT)
    const claim = request(name())
    link.set('replies', { hold: true })
    const first = own.claim(claim, TIMEOUT)
    const zk = await client()
    const dir = `/holdfast/${claim.name}`
    await vi.waitFor(async () => expect((await zk.getChildren(dir)).children).toHaveLength(1), TIMEOUT)
    // The node is there, and the answer is on its way. From here on no server hears of the session.
    link.set('requests', { blackhole: true })
    const second = own.claim(claim, 500)
    link.set('replies', {})
    expect(await first).toMatchObject({ kind: 'held' })
    expect(await second).toMatchObject({ kind: 'unknown' })
  })

  it('may be asked for again after it was given up while a request for it was under way', async () => {
    const link = kept(await FaultProxy.open(server))
    const own = store({}, `127.0.0.1:${link.port}`)
    await own.claim(request(name()), TIMEOUT)
    const claim = request(name())
    link.set('replies', { hold: true })
    const asked = own.claim(claim, TIMEOUT)
    const zk = await client()
    const dir = `/holdfast/${claim.name}`
    await vi.waitFor(async () => expect((await zk.getChildren(dir)).children).toHaveLength(1), TIMEOUT)
    const released = Promise.resolve(own.release(claim, undefined, TIMEOUT))
    link.heal()
    const answer = await asked
    expect(answer).toMatchObject({ kind: 'unknown' })
    expect(answer).not.toHaveProperty('retryable')
    expect(await released).toEqual({ released: { kind: 'released' } })
    await vi.waitFor(async () => expect((await own.claim(claim, TIMEOUT)).kind).toBe('held'), TIMEOUT)
  })

  it('says that it released what it released, also when it had to wait for a server to tell it', async () => {
    const link = kept(await FaultProxy.open(server))
    const own = store({}, `127.0.0.1:${link.port}`)
    const claim = request(name())
    await own.claim(claim, TIMEOUT)
    await link.refuse()
    link.reset()
    await vi.waitFor(async () => expect((await own.inspect(claim.name, 20)) as object).toHaveProperty('kind'))
    const releasing = own.release(claim, undefined, TIMEOUT)
    await link.accept()
    expect(await releasing).toEqual({ released: { kind: 'released' } })
  })

  it('wakes one of 200 waiters with a release, and only that one', async () => {
    const lock = name()
    const tap = kept(await Wiretap.open(server))
    const sessions = Array.from({ length: 20 }, () => store({}, `127.0.0.1:${tap.port}`))
    const events = await Promise.all(sessions.map(listen))
    // Nobody renews it, and two hundred may take a busy machine a while.
    const holder = request(lock, { ttl: 60_000 })
    await (sessions[0] as Store).claim(holder, TIMEOUT)
    const waiters: [Store, ClaimRequest][] = []
    for (let index = 0; index < 200; index++) {
      const waiter: [Store, ClaimRequest] = [sessions[1 + (index % 19)] as Store, request(lock)]
      expect(await waiter[0].claim(waiter[1], TIMEOUT)).toEqual({ kind: 'queued' })
      waiters.push(waiter)
    }
    // All watches are set, two by each waiter but the first, and the holder has heard of the queue behind it.
    await vi.waitFor(async () => expect(await mntr('zk_watch_count')).toBe(400), 10_000)
    tap.reset()
    const told = (): number => events.flat().filter(({ kind }) => kind === 'granted').length
    await (sessions[0] as Store).release(holder, undefined, TIMEOUT)
    await vi.waitFor(() => expect(told()).toBe(1), 10_000)
    const [first] = waiters[0] as [Store, ClaimRequest]
    await first.inspect(lock, TIMEOUT)
    expect(told()).toBe(1)
    // Three watches fired: those of the next two on the holder, and the holder's own on its node.
    expect(tap.events).toBe(3)
    // `inspect` reads every node; besides those, a handful of replies.
    expect(tap.replies).toBeLessThan(200 + 20)
  })

  it('lets a waiter in the middle go without waking anybody wrongly', async () => {
    const lock = name()
    const [a, b, c] = [store(), store(), store()]
    const [, , told] = [await listen(a), await listen(b), await listen(c)]
    const [first, second, third] = [request(lock), request(lock), request(lock)]
    await a.claim(first, TIMEOUT)
    await b.claim(second, TIMEOUT)
    await c.claim(third, TIMEOUT)
    await b.close()
    await vi.waitFor(async () => {
      const info = await a.inspect(lock, TIMEOUT)
      expect('waiters' in info && info.waiters.length).toBe(1)
    })
    expect(await c.renew([{ ...third, tokens: 1 }], TIMEOUT)).toEqual([{ kind: 'queued' }])
    expect(told.filter(({ kind }) => kind === 'granted')).toEqual([])
    await a.release(first, undefined, TIMEOUT)
    await vi.waitFor(() => expect(told.some(({ kind }) => kind === 'granted')).toBe(true))
  })

  it('leaves no watch at the server when a waiter gives up', async () => {
    const lock = name()
    const [a, b] = [store(), store()]
    await a.claim(request(lock), TIMEOUT)
    const [node] = (await leftovers(at())).filter((path) => path.includes(`/${lock}/`))
    /** Sessions that watch the holder's node: the holder's own, and the one directly behind it. */
    const watching = async (): Promise<number> => {
      const [, after = ''] = (await fourLetters(server, 'wchp')).split(`${node}\n`)
      return /^(\t0x[0-9a-f]+\n)*/.exec(after)?.[0].split('\n').length ?? 0
    }
    await vi.waitFor(async () => expect(await watching()).toBe(2))
    const waiter = request(lock)
    await b.claim(waiter, TIMEOUT)
    await vi.waitFor(async () => expect(await watching()).toBe(3))
    await b.release(waiter, undefined, TIMEOUT)
    await b.inspect(lock, TIMEOUT)
    expect(await watching()).toBe(2)
  })

  it('has a holder and a waiter start over when their session is ended at the server', async () => {
    const link = kept(await FaultProxy.open(server))
    const lock = name()
    const [a, b] = [new Holdfast(store({}, `127.0.0.1:${link.port}`), { ttl: 400 }), new Holdfast(store())]
    const direct = await b.mutex(lock).acquire()
    const waiting = a.mutex(lock).acquire({ wait: 20_000 })
    const held = await a.mutex(name()).acquire()
    const { signal } = held
    await vi.waitFor(async () => expect((await b.inspect(lock)).waiters).toHaveLength(1))
    link.set('requests', { blackhole: true })
    link.set('replies', { blackhole: true })
    await vi.waitFor(async () => expect((await b.inspect(lock)).waiters).toHaveLength(0), { timeout: 5000 })
    // The session is gone at the server, so the lease must have been gone here for longer.
    expect([held.held, signal.aborted]).toEqual([false, true])
    link.heal()
    link.reset()
    await vi.waitFor(async () => expect((await b.inspect(lock)).waiters).toHaveLength(1), { timeout: 10_000 })
    await direct.release()
    await (await waiting).release()
    await a.close()
    await b.close()
  })

  it('gives the lock up although the connection broke in the middle of it, and adopts a node whose answer got lost', async () => {
    const link = kept(await FaultProxy.open(server))
    const own = store({}, `127.0.0.1:${link.port}`)
    const lock = name()
    await own.claim(request(name()), TIMEOUT)
    const [cut, wanted] = [link.cutReply({ match: (chunk) => chunk.includes(lock) }), request(lock)]
    expect((await own.claim(wanted, TIMEOUT)).kind).toBe('unknown')
    await cut
    expect((await own.claim(wanted, TIMEOUT)).kind).toBe('held')
    expect((await leftovers(at())).filter((path) => path.includes(`/${lock}/`))).toHaveLength(1)
    const again = link.cutReply({ match: (chunk) => chunk.includes(lock) })
    expect((await own.release(wanted, undefined, TIMEOUT)).released.kind).toBe('unknown')
    await again
    await vi.waitFor(async () =>
      expect((await leftovers(at())).filter((path) => path.includes(`/${lock}/`))).toEqual([]),
    )
  })

  it('adopts such a node also when the connection broke once more while it was looked for', async () => {
    const zk = await client()
    const own = kept(zookeeperStore(zk))
    const wanted = request(name())
    const lost = new ZooKeeperError('CONNECTION_LOSS', 'Lost')
    const write = zk.write.bind(zk)
    vi.spyOn(zk, 'write').mockImplementationOnce(async (one) => {
      await write(one)
      throw lost
    })
    // The directory first; then the node, whose answer gets lost.
    await zk.createPath(`/holdfast/${wanted.name}`)
    expect((await own.claim(wanted, TIMEOUT)).kind).toBe('unknown')
    const exists = zk.exists.bind(zk)
    for (let good = 0; ; good++) {
      let left = good
      const looking = vi.spyOn(zk, 'exists').mockImplementation((path, options) => {
        return left-- > 0 ? exists(path, options) : Promise.reject(lost)
      })
      const { kind } = await own.claim(wanted, TIMEOUT)
      looking.mockRestore()
      if (kind === 'held') break
      expect([good, kind]).toEqual([good, 'unknown'])
    }
    expect((await leftovers(at())).filter((path) => path.includes(`/${wanted.name}/`))).toHaveLength(1)
  })

  it('works again after the directory of a lock was removed between two uses', async () => {
    const [own, zk, lock] = [store(), await client(), name()]
    for (let round = 0; round < 2; round++) {
      const claim = request(lock)
      expect((await own.claim(claim, TIMEOUT)).kind).toBe('held')
      await own.release(claim, undefined, TIMEOUT)
      await vi.waitFor(async () => expect(await zk.exists(`/holdfast/${lock}`)).toBeNull(), { timeout: 5000 })
    }
  })

  describe.each(['node', 'directory'])('whose %s was removed by force', (what) => {
    const remove = async (zk: ZooKeeper, dir: string): Promise<void> => {
      const { children } = await zk.getChildren(dir)
      await Promise.all(children.map((child) => zk.delete(`${dir}/${child}`)))
      if (what === 'directory') await zk.delete(dir)
    }

    it('comes in when it asks again, if nobody had told it where it stands', async () => {
      const [zk, admin, lock] = [await client(), await client(), name()]
      const own = kept(zookeeperStore(zk))
      vi.spyOn(zk, 'getChildren').mockRejectedValueOnce(new ZooKeeperError('CONNECTION_LOSS', 'Lost'))
      const claim = request(lock)
      expect((await own.claim(claim, TIMEOUT)).kind).toBe('unknown')
      await remove(admin, `/holdfast/${lock}`)
      await vi.waitFor(async () => expect((await own.claim(claim, TIMEOUT)).kind).toBe('held'))
    })

    it('comes in when it asks again, if it was waiting for those before it at a semaphore', async () => {
      const [own, admin, lock] = [store(), await client(), name()]
      const gate = `/holdfast/${lock}/locks`
      await admin.createPath(gate)
      await admin.create(`${gate}/lock-`, { mode: 'ephemeral-sequential' })
      const claim = request(lock, { capacity: 2 })
      const asked = own.claim(claim, TIMEOUT)
      await vi.waitFor(async () => expect((await admin.getChildren(gate)).children).toHaveLength(2))
      await remove(admin, gate)
      await asked
      await vi.waitFor(async () => expect((await own.claim(claim, TIMEOUT)).kind).toBe('held'))
      await own.release(claim, undefined, TIMEOUT)
      expect(await leftovers(at(), `/holdfast/${lock}`)).toEqual([])
    })

    it('is lost with the next renewal, if it could not be watched', async () => {
      const [zk, admin, lock] = [await client(), await client(), name()]
      const own = kept(zookeeperStore(zk))
      vi.spyOn(zk, 'getData').mockRejectedValue(new ZooKeeperError('CONNECTION_LOSS', 'Lost'))
      const claim = request(lock)
      expect((await own.claim(claim, TIMEOUT)).kind).toBe('held')
      await remove(admin, `/holdfast/${lock}`)
      expect(await own.renew([claim], TIMEOUT)).toEqual([{ kind: 'lost' }])
    })
  })

  it('opens another session rather than hang too many nodes on one', async () => {
    const own = store()
    // Those of the tests before this one are gone when the server says so.
    await vi.waitFor(async () => expect(await mntr('zk_num_alive_connections')).toBe(1), { timeout: 5000 })
    const long = 'x'.repeat(400)
    const requests = Array.from({ length: 700 }, (_, index) => request(`${long}${index}`))
    const answers = await Promise.all(requests.map(async (one) => own.claim(one, 20_000)))
    expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['held']))
    expect((await mntr('zk_num_alive_connections')) - 1).toBe(2)
  })

  it('says why when the servers allow no session that is long enough', async () => {
    const own = store({ maxSessionTimeout: 1_000_000 })
    expect(own.capabilities.maxTtl).toBe(666_666)
    const answer = await own.claim(request(name(), { ttl: 100_000 }), TIMEOUT)
    expect(answer).toMatchObject({ kind: 'unknown', retryable: false })
    expect(answer.kind === 'unknown' && String(answer.cause)).toContain('maxSessionTimeout')
  })

  it('uses a client of the user’s, and leaves it open', async () => {
    const zk = kept(new ZooKeeper(at(), { sessionTimeout: 9000 }))
    const own = zookeeperStore(zk)
    expect(own.capabilities.maxTtl).toBe(6000)
    await listen(own)
    const claim = request(name())
    expect((await own.claim(claim, TIMEOUT)).kind).toBe('held')
    await own.close()
    expect(zk.state).toBe('connected')
    expect((await leftovers(at())).filter((path) => path.includes(`/${claim.name}/`))).toEqual([])
    await zk.sync()
  })

  it('tells whoever waits by way of a user’s client when that is closed', async () => {
    const zk = kept(new ZooKeeper(at()))
    const holdfast = new Holdfast(zookeeperStore(zk))
    const lock = name()
    const holder = kept(new Holdfast(store()))
    const lease = await holder.mutex(lock).acquire()
    const waiting = holdfast.mutex(lock).acquire({ wait: Infinity })
    const ended = waiting.catch((error: unknown) => error)
    await vi.waitFor(async () => expect((await holder.inspect(lock)).waiters).toHaveLength(1), TIMEOUT)
    await zk.close()
    expect(await ended).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
    await lease.release()
    await holdfast.close({ timeout: 100 })
  })

  it('tells holders before it closes its sessions', async () => {
    const own = store()
    const events = await listen(own)
    const claim = request(name())
    await own.claim(claim, TIMEOUT)
    await own.close()
    expect(events).toEqual([{ kind: 'revoked', name: claim.name, id: claim.id }])
  })

  it.each(['of its own', 'of the user’s'])(
    'lets nobody in before a lease has run out that was left to, with a session %s',
    async (whose) => {
      const own = whose === 'of its own' ? store() : zookeeperStore(await client())
      const [closed, other] = [own, store()].map((one) => new Holdfast(one, { ttl: 2000, closeStore: true }))
      const lock = name()
      const lease = await closed?.mutex(lock).acquire()
      const result = await closed?.close({ release: false })
      expect(result).toMatchObject({ cutShort: [], leftToExpire: [{ name: lock }] })
      const next = await other?.mutex(lock).acquire({ wait: 20_000 })
      expect(lease?.held).toBe(false)
      expect(next?.token).toBeGreaterThan(lease?.token ?? 0n)
      await other?.close()
    },
  )

  it('tells a holder at once when its node was removed by force', async () => {
    const [own, zk] = [store(), await client()]
    const events = await listen(own)
    const claim = request(name())
    await own.claim(claim, TIMEOUT)
    const dir = `/holdfast/${claim.name}`
    const [node] = (await zk.getChildren(dir)).children
    // The store looks after its node only if the section lasts a moment.
    await vi.waitFor(async () => expect(await fourLetters(server, 'wchp')).toContain(`${dir}/${node}`))
    await zk.delete(`${dir}/${node}`)
    await vi.waitFor(() => expect(events).toContainEqual({ kind: 'revoked', name: claim.name, id: claim.id }))
  })

  it('passes on Curator’s request to give a lock up', async () => {
    const asked: string[] = []
    const [own, zk] = [store({ onRevocation: (lock) => void asked.push(lock) }), await client()]
    const claim = request(name())
    await own.claim(claim, TIMEOUT)
    expect(await requestRevocation(zk, claim.name)).toBe(1)
    await vi.waitFor(() => expect(asked).toEqual([claim.name]))
    expect((await own.renew([{ ...claim, tokens: 0 }], TIMEOUT))[0]?.kind).toBe('renewed')
  })

  it('shows foreign nodes, and removes them by what it shows', async () => {
    const [own, zk, lock] = [store(), await client(), name()]
    await zk.createPath(`/holdfast/${lock}`)
    const { path } = await zk.create(`/holdfast/${lock}/_c_123e4567-e89b-42d3-a456-426614174000-lock-`, {
      mode: 'ephemeral-sequential',
      data: '10.1.2.3',
    })
    const info = await own.inspect(lock, TIMEOUT)
    const [holder] = 'holders' in info ? info.holders : []
    expect(holder).toMatchObject({ owner: '10.1.2.3', weight: 1 })
    expect((await own.claim(request(lock, { whenBusy: 'try' }), TIMEOUT)).kind).toBe('busy')
    expect((await own.release({ name: lock, id: holder?.id ?? '' }, undefined, TIMEOUT)).released.kind).toBe(
      'released',
    )
    expect(await zk.exists(path)).toBeNull()
  })

  it.each([
    ['a lock', { capacity: 1 }],
    ['a reader', { capacity: ALL }],
    ['permits', { capacity: 4, weight: 2 }],
  ])('gives %s tokens beyond those of its node, from a new node in its place', async (_, kind) => {
    const own = store()
    const claim = request(name(), { ...kind, tokens: TOKENS_PER_NODE })
    const held = await own.claim(claim, TIMEOUT)
    expect(held).toMatchObject({ kind: 'held', count: TOKENS_PER_NODE })
    const [more] = await own.renew([{ ...claim, tokens: 5 }], TIMEOUT)
    expect(more).toMatchObject({ kind: 'held', count: 5 })
    const first = held.kind === 'held' ? held.token : 0n
    expect(more?.kind === 'held' && more.token).toBeGreaterThanOrEqual(first + BigInt(TOKENS_PER_NODE))
    expect((await own.renew([{ ...claim, tokens: 0 }], TIMEOUT))[0]?.kind).toBe('renewed')
    await own.release(claim, undefined, TIMEOUT)
    await vi.waitFor(async () =>
      expect((await leftovers(at())).filter((path) => path.includes(claim.name))).toEqual([]),
    )
  })

  it('gives no new tokens past somebody who waits', async () => {
    const own = store()
    const claim = request(name(), { tokens: TOKENS_PER_NODE })
    await own.claim(claim, TIMEOUT)
    await own.claim(request(claim.name), TIMEOUT)
    expect(await own.renew([{ ...claim, tokens: 5 }], TIMEOUT)).toEqual([
      { kind: 'renewed', contended: true },
    ])
  })

  /** Resets the connections at the first request like this, before the server has it. */
  const lose = (link: FaultProxy, like: RegExp): Promise<void> =>
    new Promise((done) => {
      const match = (chunk: Buffer): boolean => {
        if (!like.test(chunk.toString('latin1'))) return false
        link.heal()
        link.reset()
        done()
        return false
      }
      link.cutReply({ match }).catch(() => undefined)
    })

  it.each([
    ['a mutex', { capacity: 1 }, /lock-0000000000/],
    ['permits', { capacity: 4, weight: 2 }, /lease-000000000[01]/],
  ])('leaves nothing of %s whose old node could not be removed', async (_, kind, removal) => {
    const link = kept(await FaultProxy.open(server))
    const own = store({}, `127.0.0.1:${link.port}`)
    const claim = request(name(), { ...kind, tokens: TOKENS_PER_NODE })
    await own.claim(claim, TIMEOUT)
    // It has looked after its node: the next that names it is its removal.
    await sleep(50)
    const lost = lose(link, removal)
    expect(await own.renew([{ ...claim, tokens: 5 }], TIMEOUT)).toMatchObject([{ kind: 'unknown' }])
    await lost
    await vi.waitFor(async () =>
      expect(await own.renew([{ ...claim, tokens: 5 }], TIMEOUT)).not.toMatchObject([{ kind: 'unknown' }]),
    )
    await own.release(claim, undefined, TIMEOUT)
    await vi.waitFor(async () =>
      expect((await leftovers(at())).filter((path) => path.includes(claim.name))).toEqual([]),
    )
  })

  it('gives permits that are free, whoever else is just being let in, and no others', async () => {
    const stores = [store(), store(), store(), store()]
    const tried = (lock: string, capacity: number) => (one: Store) =>
      Promise.resolve(one.claim(request(lock, { capacity, whenBusy: 'try' }), TIMEOUT))
    const kinds = (answers: readonly { readonly kind: string }[]): string =>
      answers
        .map(({ kind }) => kind)
        .sort()
        .join(' ')
    expect(kinds(await Promise.all(stores.map(tried(name(), 8))))).toBe('held held held held')
    expect(kinds(await Promise.all(stores.map(tried(name(), 2))))).toBe('busy busy held held')
    const [lock, answers] = [name(), []] as [string, { readonly kind: string }[]]
    for (const one of stores) {
      answers.push(await one.claim(request(lock, { capacity: 8 }), TIMEOUT))
    }
    expect(kinds(answers)).toBe('held held held held')
  })

  it('does not wait for ever for somebody who stands still where permits are given', async () => {
    const [own, zk, lock] = [store(), await client(), name()]
    const gate = `/holdfast/${lock}/locks`
    await zk.createPath(gate)
    await zk.create(`${gate}/lock-`, { mode: 'ephemeral-sequential' })
    const claim = request(lock, { capacity: 2, whenBusy: 'try' })
    expect((await own.claim(claim, 100)).kind).toBe('busy')
    const queued = request(lock, { capacity: 2 })
    expect((await own.claim(queued, 100)).kind).toBe('queued')
  })

  /** Does the next request to that place only when told. */
  function holdBack(
    zk: ZooKeeper,
    method: 'sync' | 'write',
    place: string,
  ): { reached: Promise<void>; go(): void } {
    const original = zk[method].bind(zk) as (asked: unknown) => Promise<unknown>
    let go = (): void => undefined
    const went = new Promise<void>((resolve) => (go = resolve))
    const reached = new Promise<void>((resolve) => {
      const spy = vi.spyOn(zk, method) as unknown as { mockImplementation(call: unknown): void }
      let waiting = true
      spy.mockImplementation((asked: unknown) => {
        if (!waiting || !JSON.stringify(asked).includes(place)) return original(asked)
        waiting = false
        resolve()
        return went.then(() => original(asked))
      })
    })
    return { reached, go }
  }

  it('makes no permit for a claim that was given up while the first attempt was looked for', async () => {
    const zk = await client()
    const own = kept(zookeeperStore(zk))
    const claim = request(name(), { capacity: 2 })
    const create = zk.create.bind(zk)
    const lossy = vi.spyOn(zk, 'create')
    lossy.mockImplementation(async (path, options) => {
      const created = await create(path, options)
      if (path.includes('/leases/')) throw new ZooKeeperError('CONNECTION_LOSS', 'its reply got lost')
      return created
    })
    expect((await own.claim(claim, TIMEOUT)).kind).toBe('unknown')
    lossy.mockRestore()
    const looking = holdBack(zk, 'sync', '/leases')
    const again = own.claim(claim, TIMEOUT)
    await looking.reached
    expect((await own.withdraw(claim, TIMEOUT)).kind).toBe('released')
    looking.go()
    expect((await again).kind).toBe('unknown')
    expect((await leftovers(at())).filter((path) => path.includes(claim.name))).toEqual([])
  })

  it('leaves no node that was only made for more tokens after the lock was given up', async () => {
    const zk = await client()
    const own = kept(zookeeperStore(zk))
    const claim = request(name(), { tokens: TOKENS_PER_NODE })
    await own.claim(claim, TIMEOUT)
    // As if it shared a transaction that was refused: it is sent again, and later.
    const creating = holdBack(zk, 'write', claim.name)
    const renewal = own.renew([{ ...claim, tokens: 5 }], TIMEOUT)
    await creating.reached
    const released = own.release(claim, undefined, TIMEOUT)
    await sleep(20)
    creating.go()
    expect((await released).released.kind).toBe('released')
    await renewal
    expect((await leftovers(at())).filter((path) => path.includes(claim.name))).toEqual([])
  })

  it('keeps its permits while new nodes for them cannot be made', async () => {
    const link = kept(await FaultProxy.open(server))
    const own = store({}, `127.0.0.1:${link.port}`)
    const claim = request(name(), { capacity: 2, tokens: TOKENS_PER_NODE })
    await own.claim(claim, TIMEOUT)
    const renewed = (tokens: number): Promise<unknown> =>
      Promise.resolve(own.renew([{ ...claim, tokens }], TIMEOUT))
    for (let round = 0; round < 2; round++) {
      const lost = lose(link, /lease-(?!\d)/)
      expect(await renewed(5)).toMatchObject([{ kind: 'unknown' }])
      await lost
      await vi.waitFor(async () => expect(await renewed(0)).toMatchObject([{ kind: 'renewed' }]))
    }
    expect(await renewed(5)).toMatchObject([{ kind: 'held', count: 5 }])
    expect((await leftovers(at())).filter((path) => path.includes(`/${claim.name}/`))).toHaveLength(1)
  })

  it('says nothing of a claim under another name', async () => {
    const own = store()
    const claim = request(name())
    expect(await own.claim(claim, TIMEOUT)).toMatchObject({ kind: 'held' })
    const other = { ...claim, name: name() }
    expect(await own.claim(other, TIMEOUT)).toMatchObject({ kind: 'unknown', retryable: false })
    expect(await own.renew([{ ...other, tokens: 0 }], TIMEOUT)).toEqual([{ kind: 'lost' }])
    expect(await own.release(other, undefined, TIMEOUT)).toEqual({ released: { kind: 'not-held' } })
    expect(await own.renew([{ ...claim, tokens: 0 }], TIMEOUT)).toMatchObject([{ kind: 'renewed' }])
  })

  it('does not call a claim lost that another process holds', async () => {
    const [own, other] = [store(), store()]
    for (const kind of [{}, { capacity: 3 }]) {
      const claim = request(name(), kind)
      await own.claim(claim, TIMEOUT)
      expect(await other.renew([{ ...claim, tokens: 0 }], TIMEOUT)).toMatchObject([{ kind: 'unknown' }])
      expect(await own.renew([{ ...claim, tokens: 0 }], TIMEOUT)).toMatchObject([{ kind: 'renewed' }])
      await own.release(claim, undefined, TIMEOUT)
      expect(await other.renew([{ ...claim, tokens: 0 }], TIMEOUT)).toEqual([{ kind: 'lost' }])
    }
  })

  it('never renews a lease for longer than its session lasts', async () => {
    const link = kept(await FaultProxy.open(server))
    const [own, other] = [store({}, `127.0.0.1:${link.port}`), store()]
    const claim = request(name(), { ttl: 400 })
    await own.claim(claim, TIMEOUT)
    const [answer] = await own.renew([{ ...claim, ttl: 20_000, tokens: 0 }], TIMEOUT)
    // What was said is true also if the process is cut off.
    await link.close()
    const next = request(claim.name, { whenBusy: 'try' })
    await vi.waitFor(async () => expect(await other.claim(next, TIMEOUT)).toMatchObject({ kind: 'held' }), {
      timeout: 5000,
    })
    expect(answer).toMatchObject({ kind: 'unknown', retryable: false })
  })

  it('ends leases that last longer than the session that a server allows', async () => {
    const strict = await zookeeper()
    try {
      const own = store({}, `127.0.0.1:${strict.port}`)
      const events = await listen(own)
      const [claim, short] = [request(name(), { ttl: 20_000 }), request(name(), { ttl: 500 })]
      await Promise.all([own.claim(claim, TIMEOUT), own.claim(short, TIMEOUT)])
      const config = `${strict.dir}/zoo.cfg`
      writeFileSync(
        config,
        readFileSync(config, 'utf8').replace(/maxSessionTimeout=\d+/, 'maxSessionTimeout=1000'),
      )
      await strict.restart()
      await vi.waitFor(
        () => expect(events).toContainEqual({ kind: 'revoked', name: claim.name, id: claim.id }),
        { timeout: 5000 },
      )
      expect(await own.renew([{ ...claim, tokens: 0 }], TIMEOUT)).toEqual([{ kind: 'lost' }])
      expect(await own.claim(request(name(), { ttl: 20_000 }), TIMEOUT)).toMatchObject({ retryable: false })
      expect(await own.claim(request(name(), { ttl: 500 }), TIMEOUT)).toMatchObject({ kind: 'held' })
    } finally {
      await strict.stop()
    }
  })

  it.each([
    ['servers make sessions longer than it asks', 0, 6000],
    ['its user’s client has a long one', 60_000, 6000],
    ['its user’s client has one that is seldom pinged', 100_000, 3000],
  ])(
    'renews by way of another server in time when one falls silent, also where %s',
    async (_, own, ttl) => {
      const config = own === 0 ? { minSessionTimeout: 60_000 } : {}
      const ensemble = await zookeeper({ config })
      try {
        const links = [kept(await FaultProxy.open(ensemble)), kept(await FaultProxy.open(ensemble))]
        const connect = links.map(({ port }) => `127.0.0.1:${port}`).join()
        const to = own === 0 ? connect : kept(new ZooKeeper(connect, { sessionTimeout: own }))
        const holdfast = new Holdfast(kept(zookeeperStore(to)), { ttl })
        kept({ close: () => holdfast.close({ drain: 0 }) })
        const lease = await holdfast.mutex('silent').acquire()
        const lost = once(lease.signal, 'abort')
        const [silent, other] = links[0]?.connections === 1 ? links : links.toReversed()
        silent?.set('requests', { blackhole: true })
        silent?.set('replies', { blackhole: true })
        const renewed = vi.waitFor(() => expect(other?.connections).toBe(1), { timeout: 20_000 })
        await Promise.race([renewed, lost])
        expect(lease.held).toBe(true)
        // What was renewed there lasts a ttl longer.
        await new Promise((resolve) => setTimeout(resolve, 3000))
        expect(lease.held).toBe(true)
      } finally {
        for (const one of open.splice(0).reverse()) await one.close()
        await ensemble.stop()
      }
    },
    40_000,
  )

  it('is told of its turn by another server when one falls silent, on a client with a long session too', async () => {
    const links = [kept(await FaultProxy.open(server)), kept(await FaultProxy.open(server))]
    const zk = await client(links.map(({ port }) => `127.0.0.1:${port}`).join())
    const [other, own, lock] = [store(), kept(zookeeperStore(zk)), name()]
    const holder = request(lock)
    expect((await other.claim(holder, TIMEOUT)).kind).toBe('held')
    const events = await listen(own)
    const waiter = request(lock, { ttl: 2000 })
    expect(await own.claim(waiter, TIMEOUT)).toEqual({ kind: 'queued' })
    const silent = links.find(({ connections }) => connections === 1)
    silent?.set('requests', { blackhole: true })
    silent?.set('replies', { blackhole: true })
    await other.release(holder, undefined, TIMEOUT)
    // By its session of 30 s alone it would be pinged after 2.5 s, and left after another 7.5 s.
    await vi.waitFor(() => expect(events).toContainEqual(expect.objectContaining({ kind: 'granted' })), 6000)
    expect((await own.release(waiter, undefined, TIMEOUT)).released.kind).toBe('released')
  })

  it('counts a node for each permit, and refuses more in one claim than a session should have', async () => {
    const own = store()
    const long = (): string => `${name()}-${'x'.repeat(450)}`
    await own.inspect(long(), TIMEOUT)
    const ttl = 7000
    const permits = { capacity: 2 ** 31 - 2, ttl }
    const many = await own.claim(request(long(), { ...permits, weight: 2 ** 31 - 2 }), TIMEOUT)
    expect(many).toMatchObject({ kind: 'unknown', retryable: false })
    const before = await mntr('zk_num_alive_connections')
    for (let round = 0; round < 3; round++) {
      const answer = await own.claim(request(long(), { ...permits, weight: 300 }), TIMEOUT)
      expect(answer).toMatchObject({ kind: 'held' })
    }
    expect((await mntr('zk_num_alive_connections')) - before).toBeGreaterThan(0)
  })

  it('counts what all stores on a user’s client have there: they end with one session', async () => {
    const zk = kept(new ZooKeeper(at()))
    const [one, two] = [zookeeperStore(zk), zookeeperStore(zk, { root: '/elsewhere' })]
    const heavy = (): ClaimRequest => request(`${name()}-${'x'.repeat(450)}`, { capacity: 9999, weight: 300 })
    for (const own of [one, two]) expect(await own.claim(heavy(), TIMEOUT)).toMatchObject({ kind: 'held' })
    for (const own of [one, two]) {
      expect(await own.claim(request(name()), TIMEOUT)).toMatchObject({
        kind: 'unknown',
        cause: { code: 'QUOTA_EXCEEDED' },
      })
    }
    await one.close()
    expect(await two.claim(request(name()), TIMEOUT)).toMatchObject({ kind: 'held' })
    await two.close()
  })

  it('tells a waiter at once when a node goes that it may not read, and shows that node', async () => {
    const zk = await client()
    const lock = name()
    await zk.createPath(`/holdfast/${lock}`)
    const closed = store({ acl: 'creator', client: { auth: [{ scheme: 'digest', auth: 'other:secret' }] } })
    const own = store()
    const events = await listen(own)
    const [first, second] = [request(lock), request(lock)]
    expect((await closed.claim(first, TIMEOUT)).kind).toBe('held')
    expect((await own.claim(second, TIMEOUT)).kind).toBe('queued')
    expect(await own.inspect(lock, TIMEOUT)).toMatchObject({ holders: [{}], waiters: [{ id: second.id }] })
    // Its sign of life.
    expect(await own.renew([second], TIMEOUT)).toEqual([{ kind: 'queued' }])
    await closed.release(first, undefined, TIMEOUT)
    await vi.waitFor(() => expect(events).toMatchObject([{ kind: 'granted', id: second.id }]))
    await own.release(second, undefined, TIMEOUT)
  })

  it('says which right is missing in a directory that it may not read, and leaves nothing there', async () => {
    const zk = await client()
    const lock = name()
    await zk.createPath(`/holdfast/${lock}`)
    const { create, delete: remove, all } = PERMISSIONS
    zk.addAuth({ scheme: 'digest', auth: 'admin:secret' })
    await zk.setAcl(`/holdfast/${lock}`, [
      { permissions: create | remove, scheme: 'world', id: 'anyone' },
      { permissions: all, scheme: 'auth', id: '' },
    ])
    const own = store()
    const claim = request(lock)
    expect(await own.claim(claim, TIMEOUT)).toMatchObject({
      kind: 'unknown',
      retryable: false,
      cause: { code: 'NO_AUTH', message: expect.stringContaining('give the credentials') as string },
    })
    expect((await own.withdraw(claim, TIMEOUT)).kind).toBe('released')
    expect((await zk.getChildren(`/holdfast/${lock}`)).children).toEqual([])
  })

  it('lists names that it may not look into among the others', async () => {
    const prefix = name()
    const closed = store({ acl: 'creator', client: { auth: [{ scheme: 'digest', auth: 'other:secret' }] } })
    const own = store()
    const requests = [
      [closed, request(`${prefix} a`)],
      [closed, request(`${prefix} b`, { capacity: 2 })],
      [own, request(`${prefix} c`)],
    ] as const
    for (const [at, claim] of requests) expect((await at.claim(claim, TIMEOUT)).kind).toBe('held')
    expect(await own.list({ prefix }, TIMEOUT)).toEqual({
      names: [`${prefix} a`, `${prefix} b`, `${prefix} c`],
    })
  })

  it('says what acl=creator needs', async () => {
    const own = kept(await openZooKeeperStore(`ZooKeeper://${at()}?acl=creator`))
    expect(await own.claim(request(name()), TIMEOUT)).toMatchObject({
      kind: 'unknown',
      retryable: false,
      cause: { code: 'INVALID_ACL', message: expect.stringContaining('user:password@') as string },
    })
  })

  it('says what servers need that serve nobody without credentials', async () => {
    const java = ['-Dzookeeper.enforce.auth.enabled=true', '-Dzookeeper.enforce.auth.schemes=digest']
    await using strict = await zookeeper({ java })
    const own = kept(await openZooKeeperStore(`zookeeper://${strict.host}:${strict.port}`))
    const wish = request(name())
    // The server refuses one request, and closes the connection on those behind it.
    await own.claim(wish, TIMEOUT)
    expect(await own.claim(wish, TIMEOUT)).toMatchObject({
      kind: 'unknown',
      retryable: false,
      cause: {
        code: 'SESSION_CLOSED_REQUIRE_AUTH',
        message: expect.stringContaining('user:password@') as string,
      },
    })
    const known = kept(await openZooKeeperStore(`zookeeper://me:secret@${strict.host}:${strict.port}`))
    expect(await known.claim(request(name()), TIMEOUT)).toMatchObject({ kind: 'held' })
  })

  it('takes a plus in the credentials of a URL for a plus', async () => {
    const zk = await client()
    zk.addAuth({ scheme: 'digest', auth: 'me:a+b' })
    const root = `/${name()}`
    await zk.create(root, { acl: CREATOR_ACL })
    for (const url of [`me:a+b@${at()}?root=${root}`, `${at()}?root=${root}&auth=digest:me:a+b`]) {
      const own = kept(await openZooKeeperStore(`zookeeper://${url}`))
      expect((await own.claim(request(name()), TIMEOUT)).kind).toBe('held')
    }
  })

  it('has one session where all locks have the ttl that a program opens it with', async () => {
    const sessions = async (): Promise<number> =>
      (await fourLetters(server, 'cons')).match(/sid=/g)?.length ?? 0
    const before = await sessions()
    const holdfast = kept(await openHoldfast(`zookeeper://${at()}`, { ttl: 9000 }))
    await using _lease = await holdfast.mutex(name()).acquire()
    expect(await sessions()).toBe(before + 1)
    for (const ttl of [-1, 1e12, '9s' as unknown as number])
      await expect(openHoldfast(`zookeeper://${at()}`, { ttl })).rejects.toMatchObject({ argument: 'ttl' })
  })

  it('says that its leases are lost when the user closes the client that it was given', async () => {
    const [zk, lock, queued] = [await client(), name(), name()]
    const own = kept(zookeeperStore(zk))
    const [holdfast, other] = [kept(new Holdfast(own)), kept(new Holdfast(store()))]
    const lease = await holdfast.mutex(lock).acquire()
    const taken = await other.mutex(queued).acquire()
    const waiter = request(queued)
    expect(await own.claim(waiter, TIMEOUT)).toEqual({ kind: 'queued' })
    const lost = once(lease.signal, 'abort')
    await zk.close()
    // Its next renewal would be due 5 s after the grant, and its ttl ends after 15 s.
    await Promise.race([lost, sleep(2000)])
    expect(lease.held).toBe(false)
    const next = await other.mutex(lock).acquire({ wait: TIMEOUT })
    // Nobody is left whom the store could ask, and nothing to be asked about.
    expect(await own.withdraw(waiter, TIMEOUT)).toEqual({ kind: 'not-held' })
    await Promise.all([next.release(), taken.release()])
  })

  it('closes at once after its user closed the client that somebody waited on', async () => {
    const [zk, lock] = [await client(), name()]
    const [holdfast, other] = [kept(new Holdfast(kept(zookeeperStore(zk)))), kept(new Holdfast(store()))]
    const lease = await other.mutex(lock).acquire()
    const waiting = holdfast.mutex(lock).acquire({ wait: 60_000 })
    const refused = waiting.catch((error: unknown) => error)
    await vi.waitFor(async () => expect(await other.inspect(lock)).toMatchObject({ waiters: [{}] }), TIMEOUT)
    await zk.close()
    expect(await refused).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
    const since = performance.now()
    await holdfast.close({ drain: 0 })
    // It waits for its store for 5 s.
    expect(performance.now() - since).toBeLessThan(2500)
    await lease.release()
  })

  it('leaves it to the client that it was given whether that keeps the process alive', async () => {
    const sockets = (): number =>
      process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length
    const pass = async (to: Store): Promise<void> => {
      const claim = request(name())
      expect((await to.claim(claim, TIMEOUT)).kind).toBe('held')
      await to.release(claim, undefined, TIMEOUT)
    }
    const zk = await client()
    const busy = sockets()
    const [one, other] = [kept(zookeeperStore(zk)), kept(zookeeperStore(zk))]
    await pass(one)
    expect(sockets()).toBe(busy)
    zk.keepAlive(false)
    expect(sockets()).toBe(busy - 1)
    const held = request(name())
    await one.claim(held, TIMEOUT)
    await pass(other)
    expect(sockets()).toBe(busy)
    await one.release(held, undefined, TIMEOUT)
    expect(sockets()).toBe(busy - 1)
  })

  it('lets the process end when nothing is held or asked any more', async () => {
    const own = store()
    const claim = request(name())
    await own.claim(claim, TIMEOUT)
    const sockets = (): number =>
      process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length
    const busy = sockets()
    await own.release(claim, undefined, TIMEOUT)
    expect(sockets()).toBe(busy - 1)
  })

  it.each(['of its own', 'of the user’s'])(
    'keeps the process alive, with a session %s, until its waiters are gone when it is closed beside a holder that is not told',
    async (whose) => {
      const zk = await client()
      zk.keepAlive(false)
      const own = whose === 'of the user’s' ? kept(zookeeperStore(zk)) : store()
      const sockets = (): number =>
        process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length
      const lock = name()
      expect((await own.claim(request(lock), TIMEOUT)).kind).toBe('held')
      expect((await own.claim(request(lock), TIMEOUT)).kind).toBe('queued')
      const busy = sockets()
      const closing = own.close()
      expect(sockets()).toBe(busy)
      await closing
      expect((await leftovers(at())).filter((path) => path.includes(`/${lock}/`))).toHaveLength(1)
    },
  )
})
