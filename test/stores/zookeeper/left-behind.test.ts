import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'

import { available, fourLetters, zookeeper } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import type { ClaimRequest, Store } from '../../../src/core/contract.ts'
import { ALL } from '../../../src/core/contract.ts'
import { PERMISSIONS, ZooKeeper, ZooKeeperError } from '../../../src/stores/zookeeper/client/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { TOKENS_PER_NODE } from '../../../src/stores/zookeeper/token.ts'
import { FaultProxy } from 'holdfast/testkit'
import { MAX_SESSION_TIMEOUT } from './kit.ts'

const TIMEOUT = 5000

const KINDS = {
  'a mutex': { capacity: 1, weight: 1 },
  'a writer': { capacity: ALL, weight: ALL },
  'a reader': { capacity: ALL, weight: 1 },
  permits: { capacity: 4, weight: 3 },
}

interface Scene {
  readonly own: Store
  readonly claim: ClaimRequest
  readonly admin: ZooKeeper
}

/** How a claim can end. Nobody asks a second time. */
const ENDINGS: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  'was not renewed': () => sleep(1000),
  'was released': async ({ own, claim }) => own.release(claim, undefined, TIMEOUT),
  'was withdrawn': async ({ own, claim }) => own.withdraw(claim, TIMEOUT),
  'was closed with its store, beside a client that lives on': async ({ own }) => own.close(),
  'had a node removed by force': async ({ own, claim, admin }) => {
    const [node = ''] = (await nodesOf(claim, admin)).sort()
    await admin.delete(node)
    await own.renew([{ ...claim, tokens: 0 }], TIMEOUT)
  },
}

async function nodesOf({ name }: ClaimRequest, zk: ZooKeeper): Promise<string[]> {
  const dir = `/holdfast/${name}`
  const lists = [dir, `${dir}/leases`, `${dir}/locks`].map(async (at) => {
    const { children } = await zk.getChildren(at).catch(() => ({ children: [] }))
    return children.filter((child) => child.startsWith('_c_')).map((child) => `${at}/${child}`)
  })
  return (await Promise.all(lists)).flat()
}

const CASES = Object.keys(KINDS).flatMap((kind) => Object.keys(ENDINGS).map((ending) => [kind, ending]))

describe.skipIf(!available('zookeeper'))('what a claim leaves behind', () => {
  let server: Server
  let admin: ZooKeeper
  let claims = 0
  const open: { close(): unknown }[] = []
  const kept = <T extends { close(): unknown }>(one: T): T => {
    open.push(one)
    return one
  }
  const client = async (port = server.port): Promise<ZooKeeper> => {
    const zk = kept(new ZooKeeper(`127.0.0.1:${port}`, { sessionTimeout: 30_000 }))
    await zk.connected()
    return zk
  }
  const request = (more: Partial<ClaimRequest> = {}): ClaimRequest => ({
    name: `left-${claims}`,
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

  beforeAll(async () => {
    server = await zookeeper()
    admin = new ZooKeeper(`127.0.0.1:${server.port}`)
    await admin.connected()
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    for (const one of open.splice(0).reverse()) await one.close()
  })
  afterAll(async () => {
    await admin.close()
    await server.stop()
  })

  const faults: Readonly<Record<string, (link: FaultProxy) => ZooKeeperError>> = {
    'is refused': () => new ZooKeeperError('THROTTLED', 'The server has too much to do'),
    'does not get there': (link) => {
      link.reset()
      return new ZooKeeperError('CONNECTION_LOSS', 'The connection broke')
    },
  }

  describe.each(Object.entries(faults))('is nothing where a removal %s', (_, fault) => {
    it.each(CASES)('%s that %s', async (kind, ending) => {
      const link = kept(await FaultProxy.open(server))
      const zk = await client(link.port)
      const own = kept(zookeeperStore(zk))
      const claim = request({ ...KINDS[kind as keyof typeof KINDS], ttl: 500 })
      expect(await own.claim(claim, TIMEOUT)).toMatchObject({ kind: 'held' })
      // It has passed the gate, and looks after its nodes.
      await sleep(30)
      const write = zk.write.bind(zk)
      let failed = false
      vi.spyOn(zk, 'write').mockImplementation(async (one) => {
        if (failed || one.kind !== 'delete') return write(one)
        failed = true
        throw fault(link)
      })
      await ENDINGS[ending as string]?.({ own, claim, admin })
      await vi.waitFor(async () => expect(await nodesOf(claim, admin)).toEqual([]), {
        timeout: 10_000,
        interval: 100,
      })
    })
  })

  it('shuts no gate: a semaphore’s next one comes in although the removal of the one before at the gate was refused', async () => {
    const zk = await client()
    const [own, other] = [kept(zookeeperStore(zk)), kept(zookeeperStore(await client()))]
    const [first, second] = [request({ capacity: 4 }), request({ capacity: 4 })].map((one) => ({
      ...one,
      name: 'shut',
    })) as [ClaimRequest, ClaimRequest]
    const write = zk.write.bind(zk)
    let refused = 0
    vi.spyOn(zk, 'write').mockImplementation(async (one) => {
      if (one.kind === 'create' || refused++ > 1) return write(one)
      throw new ZooKeeperError('THROTTLED', 'The server has too much to do')
    })
    expect(await own.claim(first, TIMEOUT)).toMatchObject({ kind: 'held' })
    await vi.waitFor(async () => expect(await other.claim(second, TIMEOUT)).toMatchObject({ kind: 'held' }), {
      timeout: 10_000,
      interval: 100,
    })
    expect(await own.renew([{ ...first, tokens: 0 }], TIMEOUT)).toMatchObject([{ kind: 'renewed' }])
  })

  it('is no hindrance where it is not: who waits for permits gets them after all were removed with their directory', async () => {
    const own = kept(zookeeperStore(await client()))
    const all = request({ name: 'swept', capacity: 2, weight: 2 })
    const one = request({ name: 'swept', capacity: 2 })
    expect(await own.claim(all, TIMEOUT)).toMatchObject({ kind: 'held' })
    expect(await own.claim(one, TIMEOUT)).toMatchObject({ kind: 'queued' })
    const leases = '/holdfast/swept/leases'
    const { children } = await admin.getChildren(leases)
    await admin.transaction(
      [...children.map((child) => `${leases}/${child}`), leases].map((path) => ({ kind: 'delete', path })),
    )
    await vi.waitFor(async () => expect(await own.claim(one, TIMEOUT)).toMatchObject({ kind: 'held' }), {
      timeout: 10_000,
      interval: 100,
    })
  })

  it('keeps nobody from reading: a writer’s second node, whose reply got lost, goes when it becomes a reader', async () => {
    const zk = await client()
    const [own, other] = [kept(zookeeperStore(zk)), kept(zookeeperStore(await client()))]
    const claim = request({ ...KINDS['a writer'], tokens: TOKENS_PER_NODE })
    await own.claim(claim, TIMEOUT)
    const write = zk.write.bind(zk)
    vi.spyOn(zk, 'write').mockImplementationOnce(async (one) => {
      await write(one)
      throw new ZooKeeperError('CONNECTION_LOSS', 'Its reply got lost')
    })
    expect(await own.renew([{ ...claim, tokens: 5 }], TIMEOUT)).toMatchObject([{ kind: 'unknown' }])
    expect(await own.downgrade?.(claim, TIMEOUT)).toEqual({ kind: 'downgraded' })
    const reader = request({ ...KINDS['a reader'], name: claim.name })
    expect(await other.claim(reader, TIMEOUT)).toMatchObject({ kind: 'held' })
    expect(await own.renew([{ ...claim, tokens: 0 }], TIMEOUT)).toMatchObject([{ kind: 'renewed' }])
  })

  describe('is nothing of a claim that was asked for while no server could be reached, and', () => {
    const asked = async (): Promise<{
      own: Store
      claim: ClaimRequest
      answer: unknown
      back: () => Promise<void>
    }> => {
      const link = kept(await FaultProxy.open(server))
      const zk = await client(link.port)
      const own = kept(zookeeperStore(zk))
      const claim = request()
      link.set('replies', { hold: true })
      link.reset()
      await vi.waitFor(() => expect(zk.state).not.toBe('connected'))
      const answer = Promise.resolve(own.claim(claim, 20_000))
      const back = async (): Promise<void> => {
        link.heal()
        await zk.connected()
        // Whatever it would make now is there after this.
        await zk.createPath('/after')
      }
      return { own, claim, answer, back }
    }

    it('given up before one was', async () => {
      const { own, claim, answer, back } = await asked()
      expect(await own.withdraw(claim, 100)).toMatchObject({ kind: 'unknown' })
      await back()
      expect(await answer).toEqual({ kind: 'busy' })
      expect(await nodesOf(claim, admin)).toEqual([])
    })

    it('whose store was closed before one was', async () => {
      const { own, claim, answer, back } = await asked()
      await own.close()
      await back()
      expect(await answer).toMatchObject({ kind: 'unknown' })
      expect(await nodesOf(claim, admin)).toEqual([])
    })
  })

  it('costs no lease its renewal: new tokens that a server refuses are asked for later', async () => {
    const zk = await client()
    const own = kept(zookeeperStore(zk))
    for (const { capacity, weight } of [KINDS['a mutex'], KINDS.permits]) {
      const claim = request({ capacity, weight, tokens: TOKENS_PER_NODE })
      const { token } = (await own.claim(claim, TIMEOUT)) as { token: bigint }
      const refused = (): Promise<never> => Promise.reject(new ZooKeeperError('QUOTA_EXCEEDED', 'No more'))
      const spies = [
        vi.spyOn(zk, 'write').mockImplementation(refused),
        vi.spyOn(zk, 'create').mockImplementation(refused),
      ]
      expect(await own.renew([{ ...claim, tokens: 5 }], TIMEOUT)).toEqual([
        { kind: 'renewed', contended: true },
      ])
      for (const spy of spies) spy.mockRestore()
      const [again] = await own.renew([{ ...claim, tokens: 5 }], TIMEOUT)
      expect(again).toMatchObject({ kind: 'held', count: 5 })
      expect((again as { token: bigint }).token).toBeGreaterThan(token + BigInt(TOKENS_PER_NODE - 1))
      await own.release(claim, undefined, TIMEOUT)
      expect(await nodesOf(claim, admin)).toEqual([])
    }
  })

  it('is never more than the end of a session may carry, however long the chroot is', async () => {
    const sessions = async (): Promise<number> =>
      Number(/zk_num_alive_connections\t(\d+)/.exec(await fourLetters(server, 'mntr'))?.[1])
    const chroot = `/${'c'.repeat(900)}`
    const own = kept(
      zookeeperStore(`127.0.0.1:${server.port}${chroot}`, { maxSessionTimeout: MAX_SESSION_TIMEOUT }),
    )
    const before = await sessions()
    const answers = await Promise.all(
      Array.from({ length: 600 }, () => request()).map(async (one) => own.claim(one, 20_000)),
    )
    expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['held']))
    // 600 paths of 1,000 bytes, and 256 kB for each session.
    expect((await sessions()) - before).toBe(3)
  })

  it('does not hang on a right to create what is there already', async () => {
    const zk = await client()
    zk.addAuth({ scheme: 'digest', auth: 'admin:secret' })
    const { read, all } = PERMISSIONS
    await zk.createPath('/tenants/one')
    await zk.setAcl('/tenants', [
      { permissions: read, scheme: 'world', id: 'anyone' },
      { permissions: all, scheme: 'auth', id: '' },
    ])
    const tenant = await client()
    await tenant.createPath('/tenants/one/locks')
    await expect(tenant.createPath('/tenants/two/locks')).rejects.toMatchObject({ code: 'NO_AUTH' })
    const own = kept(zookeeperStore(`127.0.0.1:${server.port}/tenants/one`, { root: '/other' }))
    expect(await own.claim(request(), TIMEOUT)).toMatchObject({ kind: 'held' })
  })
})
