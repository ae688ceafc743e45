import { setTimeout as sleep } from 'node:timers/promises'

import { FaultProxy, spawnTaker } from 'holdfast/testkit'
import type { StoreModule } from 'holdfast/testkit'
import { expect, it, vi } from 'vitest'

import type { ClockShim, Server } from '../../../scripts/services.mjs'
import type { RenewRequest, Store } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import type { GuardedLease } from '../../../src/stores/sql/guarded.ts'
import { CommitProxy, isCommit } from './commit-proxy.ts'

/** A server that is there to be hurt. Its clock is the shim's. */
export interface Victim<Tx> {
  readonly server: Server
  readonly clock: ClockShim
  readonly module: StoreModule
  /** A store with a pool of its own, of that many connections. */
  readonly open: (options?: { readonly connections?: number; readonly port?: number }) => Opened<Tx>
  /** Ends every connection but the administrator's, from the server's side. */
  readonly killConnections: () => Promise<void>
  /** Waits for the first row, then locks the second: in the other order than a renewal of both. */
  readonly deadlock: (first: string, second: string, locked: () => Promise<unknown>) => Promise<void>
  readonly dropTable: () => Promise<void>
  readonly write: (tx: Tx, line: string) => Promise<unknown>
  readonly lines: () => Promise<readonly string[]>
}

export interface Opened<Tx> {
  readonly store: Store & { guarded<T>(lease: GuardedLease, work: (tx: Tx) => Promise<T>): Promise<T> }
  /** A query of the program that the pool belongs to. */
  readonly ping: () => Promise<unknown>
}

const SECONDS = 1000

export function faultCases<Tx>(victim: () => Victim<Tx>): void {
  it('counts right while connections are killed all the time', async () => {
    const { open, killConnections } = victim()
    const holdfasts = [open(), open()].map(({ store }) => new Holdfast(store, { ttl: 3000 }))
    let count = 0
    let running = true
    const nemesis = (async (): Promise<void> => {
      while (running) {
        await sleep(40)
        await killConnections()
      }
    })()
    const add = async (holdfast: Holdfast | undefined): Promise<void> => {
      for (let round = 0; round < 10; round++) {
        const lease = await holdfast?.mutex('killed').acquire({ wait: 40 * SECONDS })
        const seen = count
        await sleep(1)
        count = seen + 1
        await lease?.release()
      }
    }
    await Promise.all([0, 1, 0, 1, 0, 1].map((index) => add(holdfasts[index])))
    running = false
    await nemesis
    expect(count).toBe(60)
    await Promise.all(holdfasts.map((holdfast) => holdfast.close()))
  })

  it('loses a lease, and says so in time, when the server stands still; and goes on when it moves again', async () => {
    const { open, server } = victim()
    const holdfast = new Holdfast(open().store, { ttl: 600, requestTimeout: 500 })
    const lease = await holdfast.mutex('frozen').acquire()
    const lost = new Promise((resolve) => lease.signal.addEventListener('abort', resolve, { once: true }))
    await server.pause()
    try {
      await lost
      expect(lease.held).toBe(false)
    } finally {
      await server.resume()
    }
    const again = await holdfast.mutex('frozen').acquire({ wait: 20 * SECONDS })
    expect(again.token).toBeGreaterThan(lease.token)
    await holdfast.close({ drain: 0 })
  })

  it('goes on when connections led nowhere, old ones and new ones, as many as the pool has', async () => {
    const { open, server } = victim()
    const proxy = await FaultProxy.open(server)
    const { store, ping } = open({ connections: 4, port: proxy.port })
    const holdfast = new Holdfast(store, { ttl: 2000, requestTimeout: 300 })
    const names = Array.from({ length: 12 }, (_, index) => `nowhere:${index}`)
    await Promise.all([...names.map((name) => holdfast.mutex(name).run(() => {})), ping(), ping(), ping()])
    proxy.set('requests', { blackhole: true })
    const failed = names.map((name) => holdfast.mutex(name).acquire({ wait: 2000 }))
    const outcomes = await Promise.allSettled(failed)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toEqual([])
    proxy.heal()
    const lease = await holdfast.mutex('nowhere:0').acquire({ wait: 40 * SECONDS })
    expect(lease.held).toBe(true)
    await holdfast.close({ drain: 0 })
    await proxy.close()
  })

  it('ends a guarded transaction on a connection that leads nowhere, and begins the next on another', async () => {
    const { open, server, write, lines } = victim()
    const proxy = await FaultProxy.open(server)
    const { store } = open({ connections: 4, port: proxy.port })
    const holdfast = new Holdfast(store, { ttl: 120 * SECONDS })
    const lease = await holdfast.mutex('silent').acquire()
    await store.guarded(lease, (tx) => write(tx, 'silent: before'))
    const before = proxy.swallowed
    proxy.set('requests', { blackhole: true })
    const silent = store.guarded(lease, (tx) => write(tx, 'silent: during')).catch((error: unknown) => error)
    await expect.poll(() => proxy.swallowed).toBeGreaterThan(before)
    proxy.heal()
    expect(await silent).toMatchObject({ code: 'HOLDFAST_NO_ANSWER' })
    await store.guarded(lease, (tx) => write(tx, 'silent: after'))
    expect((await lines()).filter((line) => line.startsWith('silent'))).toEqual([
      'silent: before',
      'silent: after',
    ])
    await holdfast.close({ drain: 0 })
    await proxy.close()
  })

  it('remembers who holds a lock, and the last token, over the death of the server', async () => {
    const { open, server } = victim()
    const { store } = open()
    const holdfast = new Holdfast(store, { ttl: 30 * SECONDS })
    const lease = await holdfast.mutex('crash').acquire()
    await server.kill('SIGKILL')
    await server.restart()
    const other = new Holdfast(open().store)
    expect(await other.mutex('crash').tryAcquire()).toBeNull()
    await holdfast.close({ drain: 0 })
    const next = await other.mutex('crash').acquire({ wait: 20 * SECONDS })
    expect(next.token).toBeGreaterThan(lease.token)
    await other.close({ drain: 0 })
  })

  it('tells that a guarded transaction failed when the reply to its commit is cut off, and frees the lock', async () => {
    const { open, server, write } = victim()
    const proxy = await FaultProxy.open(server)
    const { store } = open({ port: proxy.port })
    const holdfast = new Holdfast(store)
    const cut = proxy.cutReply({ match: isCommit })
    const failed = holdfast
      .mutex('commit')
      .run((lease) => store.guarded(lease, (tx) => write(tx, 'commit')))
      .catch((error: unknown) => error)
    await cut
    expect(await failed).toBeInstanceOf(Error)
    const direct = new Holdfast(open().store)
    const lease = await direct.mutex('commit').acquire({ wait: 20 * SECONDS })
    await lease.release()
    await Promise.all([holdfast.close(), direct.close()])
    await proxy.close()
  })

  it.each(['maxHold', 'release'])(
    'lets the next task of the same process in when the commit is over, though the lease ended before it (%s)',
    async (how) => {
      const { open, server, write, lines } = victim()
      const proxy = await CommitProxy.open(server, 1500)
      const { store } = open({ port: proxy.port })
      const holdfast = new Holdfast(store)
      const line = `slow:${how}`
      const first = await holdfast.mutex(line).acquire(how === 'maxHold' ? { maxHold: 500 } : {})
      const committed = store.guarded(first, (tx) => write(tx, line))
      const next = holdfast.mutex(line).acquire({ wait: 20 * SECONDS })
      await sleep(300)
      const released = how === 'release' ? first.release() : undefined
      await next
      expect(await lines()).toContain(line)
      await committed
      await released
      await holdfast.close({ drain: 0 })
      proxy.close()
    },
  )

  it('lets nobody in before a commit is over of which nobody knows', async () => {
    const { open, server, write, lines } = victim()
    const proxy = await CommitProxy.open(server, 1500, { cut: true })
    const { store } = open({ port: proxy.port })
    const [holdfast, direct] = [new Holdfast(store), new Holdfast(open().store)]
    const failed = holdfast
      .mutex('unheard')
      .run((lease) => store.guarded(lease, (tx) => write(tx, 'unheard')))
      .catch((error: unknown) => error)
    await sleep(300)
    const lease = await direct.mutex('unheard').acquire({ wait: 20 * SECONDS })
    expect(await lines()).toContain('unheard')
    expect(await failed).toBeInstanceOf(Error)
    await lease.release()
    await Promise.all([holdfast.close(), direct.close()])
    proxy.close()
  })

  it('renews both of two leases although the server broke a deadlock in between', async () => {
    const { open, deadlock } = victim()
    const { store } = open()
    const claims = ['deadlock:a', 'deadlock:z'].map((name, index): RenewRequest => {
      return { name, id: `deadlock.${index}`, ttl: 20_000, patience: 1000, tokens: 0 }
    })
    for (const { name, id } of claims) {
      const claim = {
        name,
        id,
        weight: 1,
        capacity: 1,
        ttl: 20_000,
        patience: 1000,
        tokens: 1,
        owner: 'test',
      }
      expect(await store.claim({ ...claim, whenBusy: 'try' }, 5000)).toMatchObject({ kind: 'held' })
    }
    let renewing: ReturnType<Store['renew']> | undefined
    await deadlock('deadlock:z', 'deadlock:a', async () => {
      renewing = store.renew(claims, 20_000)
      await sleep(300)
    })
    expect(await renewing).toMatchObject([{ kind: 'renewed' }, { kind: 'renewed' }])
    for (const claim of claims) await store.release(claim, undefined, 5000)
  })

  it('gives larger tokens after the clock of the server was put back, and lets a lease run out early when forward', async () => {
    const { open, clock } = victim()
    const { store } = open()
    const [a, b] = [new Holdfast(store), new Holdfast(open().store)]
    const before = await a.mutex('clock').acquire()
    clock.jump(3600 * SECONDS)
    try {
      // What a lease cannot promise: the server believes that an hour has passed.
      const early = await b.mutex('clock').acquire({ wait: 10 * SECONDS })
      expect(early.token).toBeGreaterThan(before.token)
      await early.release()
    } finally {
      clock.jump(-3600 * SECONDS)
    }
    const after = await a.mutex('clock:2').acquire()
    expect(
      await b
        .mutex('clock')
        .acquire()
        .then(async (lease) => {
          await lease.release()
          return lease.token
        }),
    ).toBeGreaterThan(before.token + 3000n * 1_000_000n)
    await after.release()
    await Promise.all([a.close({ drain: 0 }), b.close()])
  })

  it('lets ten processes that start at once make the table together', async () => {
    const { dropTable, module } = victim()
    await dropTable()
    const takers = await Promise.all(Array.from({ length: 10 }, () => spawnTaker(module, { ttl: 5000 })))
    const tokens = await Promise.all(takers.map((taker, index) => taker.acquire(`migrate:${index}`)))
    expect(tokens.every((token) => token > 0n)).toBe(true)
    await Promise.all(takers.map((taker) => taker.close()))
  })

  it('leaves the pool to its owner while fifty names are waited for', async () => {
    const { open } = victim()
    const { store, ping } = open({ connections: 3 })
    const [waiter, holder] = [new Holdfast(store), new Holdfast(open().store)]
    const names = Array.from({ length: 50 }, (_, index) => `pool:${index}`)
    const held = await Promise.all(names.map((name) => holder.mutex(name).acquire()))
    const waiting = Promise.all(names.map((name) => waiter.mutex(name).acquire({ wait: 50 * SECONDS })))
    await vi.waitFor(async () => expect((await holder.inspect('pool:49')).waiters).toHaveLength(1), 30_000)
    // With a connection for each waiter none would be left until the end.
    for (let round = 0; round < 20; round++) await ping()
    expect((await holder.inspect('pool:49')).waiters).toHaveLength(1)
    await Promise.all(held.map((lease) => lease.release()))
    expect(await waiting).toHaveLength(50)
    await Promise.all([waiter.close({ drain: 0 }), holder.close()])
  })
}
