import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'

import { available, zookeeper } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import type { ClaimRequest, Store, StoreEvent } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/index.ts'
import { ZooKeeper } from '../../../src/stores/zookeeper/client/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import type * as proofs from '../../../src/stores/zookeeper/proof.ts'

/** Whether a proof is fresh, instead of by the clock: a busy machine must not decide what is tested here. */
const clock = vi.hoisted(() => ({ fresh: true }))
vi.mock('../../../src/stores/zookeeper/proof.ts', async (original) => ({
  ...(await original<typeof proofs>()),
  isFresh: ({ mono }: { mono: number }) => clock.fresh && mono > -Infinity,
}))

const TIMEOUT = 10_000
const TTL = 15_000

interface Party {
  readonly zk: ZooKeeper
  readonly store: Store
  readonly claim: ClaimRequest
  readonly told: StoreEvent[]
  /** Questions that it sent, by their names. */
  readonly asked: string[]
}

describe.skipIf(!available('zookeeper'))('a lock of ZooKeeper that goes from one process to the next', () => {
  let server: Server
  let names = 0
  const open: { close(): unknown }[] = []

  beforeAll(async () => void (server = await zookeeper()))
  afterAll(() => server.stop())
  beforeEach(() => void (clock.fresh = true))
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close()
  })

  const party = async (lock: string): Promise<Party> => {
    const zk = new ZooKeeper(`127.0.0.1:${server.port}`, { sessionTimeout: 30_000 })
    open.push(zk)
    await zk.connected()
    const asked: string[] = []
    for (const method of ['sync', 'getChildren', 'exists'] as const) {
      const real = zk[method].bind(zk) as (...args: unknown[]) => Promise<never>
      vi.spyOn(zk, method).mockImplementation((...args: unknown[]) => {
        asked.push(method)
        return real(...args)
      })
    }
    const store = zookeeperStore(zk)
    open.push(store)
    const told: StoreEvent[] = []
    const session = `s${names++}`
    await store.watch(session, (event) => told.push(event), TIMEOUT)
    const claim: ClaimRequest = {
      name: lock,
      id: `${session}.0`,
      weight: 1,
      capacity: 1,
      ttl: TTL,
      patience: 60_000,
      tokens: 1,
      whenBusy: 'queue',
      owner: 'test',
    }
    return { zk, store, claim, told, asked }
  }

  /** So many that want one lock: the first holds it, the others wait in this order. */
  const queue = async (size: number): Promise<Party[]> => {
    const lock = `hand-over-${names++}`
    const parties: Party[] = []
    for (let index = 0; index < size; index++) {
      const one = await party(lock)
      const answer = await one.store.claim(one.claim, TIMEOUT)
      expect(answer.kind).toBe(index === 0 ? 'held' : 'queued')
      parties.push(one)
    }
    return parties
  }
  const release = async ({ store, claim }: Party): Promise<void> =>
    expect(await store.release(claim, undefined, TIMEOUT)).toEqual({ released: { kind: 'released' } })
  const granted = ({ told }: Party): boolean => told.some(({ kind }) => kind === 'granted')
  const confirmed = async ({ store, claim }: Party): Promise<string | undefined> =>
    (await store.renew([{ ...claim, tokens: 1 }], TIMEOUT))[0]?.kind
  /** All that was asked is answered. */
  const settle = ({ zk }: Party): Promise<void> => zk.sync()

  it('needs no question where the next one knows that it is next, and that others wait behind it', async () => {
    const [a, b, c] = (await queue(4)) as [Party, Party, Party, Party]
    await release(a)
    // The second in line looks when the first one's turn comes.
    await vi.waitFor(() => expect(c.asked.filter((one) => one === 'getChildren')).toHaveLength(2))
    await vi.waitFor(() => expect(granted(b)).toBe(true))
    expect(await confirmed(b)).toBe('held')
    await settle(c)
    c.asked.length = 0
    await release(b)
    await vi.waitFor(() => expect(granted(c)).toBe(true))
    expect(await confirmed(c)).toBe('held')
    expect(c.asked).toEqual([])
    // Only the first question after the message is answered without asking anybody.
    expect(await confirmed(c)).toBe('held')
    expect(c.asked).toContain('sync')
  })

  it('takes one question, by way of the leader, where nobody is known to wait behind', async () => {
    const [a, b] = (await queue(2)) as [Party, Party]
    b.asked.length = 0
    await release(a)
    await vi.waitFor(() => expect(granted(b)).toBe(true))
    expect(await confirmed(b)).toBe('held')
    // A list without `sync` would be that of a holder who looks whether others come.
    expect(b.asked.filter((one) => one === 'sync')).toHaveLength(1)
  })

  it('takes questions again when the last answer was a while ago', async () => {
    const [a, b, c] = (await queue(4)) as [Party, Party, Party, Party]
    clock.fresh = false
    await release(a)
    await vi.waitFor(() => expect(granted(b)).toBe(true))
    await vi.waitFor(() => expect(c.asked.filter((one) => one === 'getChildren')).toHaveLength(2))
    await settle(c)
    c.asked.length = 0
    await release(b)
    await vi.waitFor(() => expect(granted(c)).toBe(true))
    expect(c.asked).toEqual(['sync', 'getChildren'])
    expect(await confirmed(c)).toBe('held')
    expect(c.asked).toEqual(['sync', 'getChildren', 'sync', 'getChildren'])
  })

  it('does not go to somebody whose neighbour only gave up waiting', async () => {
    const [a, b, c] = (await queue(4)) as [Party, Party, Party, Party]
    await b.store.withdraw(b.claim, TIMEOUT)
    await vi.waitFor(() => expect(c.asked.filter((one) => one === 'getChildren')).toHaveLength(2))
    await settle(c)
    expect(granted(c)).toBe(false)
    expect(await confirmed(c)).toBe('queued')
    await release(a)
    await vi.waitFor(() => expect(granted(c)).toBe(true))
  })

  it('waits for a neighbour whose node only was written to', async () => {
    const [a, b, c] = (await queue(4)) as [Party, Party, Party, Party]
    await release(a)
    await vi.waitFor(() => expect(granted(b)).toBe(true))
    const dir = `/holdfast/${c.claim.name}`
    const [first] = (await a.zk.getChildren(dir)).children.sort((x, y) =>
      x.slice(-10) < y.slice(-10) ? -1 : 1,
    )
    await a.zk.setData(`${dir}/${first}`, 'something')
    await settle(c)
    expect(granted(c)).toBe(false)
    await release(b)
    await vi.waitFor(() => expect(granted(c)).toBe(true))
  })

  it('is asked for by way of the leader, also if it is asked for once more', async () => {
    const [a, b] = (await queue(2)) as [Party, Party]
    for (const one of [a, b]) {
      one.asked.length = 0
      await one.store.claim(one.claim, TIMEOUT)
      // A holder also looks, at a time of its own, whether others come: that list needs no `sync`.
      expect(one.asked.filter((question) => question === 'sync')).toHaveLength(1)
      expect(one.asked.slice(one.asked.indexOf('sync')).slice(0, 2)).toEqual(['sync', 'getChildren'])
    }
  })

  it('has one holder at a time, whoever comes, gives up and goes', async () => {
    const name = `hand-over-${names++}`
    const holdfasts: Holdfast[] = []
    for (let index = 0; index < 8; index++) {
      const { store } = await party(name)
      const holdfast = new Holdfast(store)
      open.push({ close: () => holdfast.close() })
      holdfasts.push(holdfast)
    }
    let holder: number | null = null
    let last = 0n
    let sections = 0
    let gaveUp = 0
    const end = performance.now() + 3000
    const work = async (holdfast: Holdfast, who: number): Promise<void> => {
      for (let round = 0; performance.now() < end; round++) {
        const impatient = (who + round) % 4 === 0
        const lock = holdfast.mutex(name, { ttl: TTL })
        const signal = impatient ? AbortSignal.timeout(1 + ((who * 7 + round) % 9)) : undefined
        const lease = await lock.acquire({ wait: 30_000, ...(signal && { signal }) }).catch(() => null)
        if (lease === null) {
          gaveUp++
          continue
        }
        expect(holder).toBeNull()
        holder = who
        expect(lease.token).toBeGreaterThan(last)
        last = lease.token
        if (round % 3 === 0) await new Promise((resolve) => setTimeout(resolve, round % 4))
        else await Promise.resolve()
        expect(holder).toBe(who)
        holder = null
        sections++
        await lease.release()
      }
    }
    await Promise.all(holdfasts.map(work))
    expect(sections).toBeGreaterThan(20)
    expect(gaveUp).toBeGreaterThan(0)
  }, 30_000)
})
