import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'

import { available, fourLetters, zookeeper } from '../../../../scripts/services.mjs'
import type { Server } from '../../../../scripts/services.mjs'
import { ZooKeeper, ZooKeeperError } from '../../../../src/stores/zookeeper/client/index.ts'
import type { SingleWrite, Written, ZooKeeperOptions } from '../../../../src/stores/zookeeper/client/index.ts'
import { WriteGroup } from '../../../../src/stores/zookeeper/client/merging.ts'
import { Chroot } from '../../../../src/stores/zookeeper/client/paths.ts'
import { mergeable } from '../../../../src/stores/zookeeper/client/writes.ts'
import { FaultProxy } from 'holdfast/testkit'

describe.skipIf(!available('zookeeper'))('single writes of one turn', () => {
  let server: Server
  let folders = 0
  const open: { close(): unknown }[] = []
  beforeAll(async () => void (server = await zookeeper()))
  afterAll(() => server.stop())
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close()
  })

  async function client(options: ZooKeeperOptions & { port?: number } = {}): Promise<ZooKeeper> {
    const zk = new ZooKeeper(`127.0.0.1:${options.port ?? server.port}`, options)
    open.push(zk)
    await zk.connected()
    return zk
  }
  /** A directory of the test's own. */
  async function folder(zk: ZooKeeper): Promise<string> {
    const { path } = await zk.create(`/writes-${folders++}`)
    return path
  }
  const sequential = (path: string, more: object = {}): SingleWrite => ({
    kind: 'create',
    path: `${path}/n-`,
    mode: 'ephemeral-sequential',
    ...more,
  })
  const received = async (): Promise<number> =>
    Number(/zk_packets_received\t(\d+)/.exec(await fourLetters(server, 'mntr'))?.[1])
  const paths = (written: readonly Written[]): string[] => written.map(({ path }) => path)

  it('go out as one request, and each has its own answer', async () => {
    const zk = await client()
    const at = await folder(zk)
    const before = await received()
    const made = await Promise.all(Array.from({ length: 40 }, () => zk.write(sequential(at))))
    const after = await received()
    // The questions of this test count too.
    expect(after - before).toBeLessThan(5)
    const { children } = await zk.getChildren(at)
    expect(paths(made)).toEqual(children.sort().map((child) => `${at}/${child}`))
    const [first] = made as [Written]
    expect((await zk.exists(first.path))?.czxid).toBe(first.zxid)
    expect((await zk.exists(first.path))?.ephemeralOwner).toBe(zk.sessionId)
    const gone = await Promise.all(made.map(({ path }) => zk.write({ kind: 'delete', path })))
    expect(paths(gone)).toEqual(paths(made))
    expect((await zk.getChildren(at)).children).toEqual([])
  })

  it('tell the czxid of a node, alone and together with others, while others write too', async () => {
    const [zk, other] = [await client(), await client()]
    const [at, elsewhere] = [await folder(zk), await folder(zk)]
    let busy = true
    const noise = (async () => {
      while (busy) await Promise.all(Array.from({ length: 5 }, () => other.write(sequential(elsewhere))))
    })()
    for (let round = 0; round < 60; round++) {
      const made = await Promise.all(
        Array.from({ length: 1 + (round % 4) }, () => zk.write(sequential(at, { unique: round % 2 === 0 }))),
      )
      const stats = await Promise.all(made.map(({ path }) => zk.exists(path)))
      expect(stats.map((stat) => stat?.czxid)).toEqual(made.map(({ zxid }) => zxid))
      expect(new Set(made.map(({ zxid }) => zxid)).size).toBe(round % 2 === 0 ? made.length : 1)
    }
    busy = false
    await noise
  })

  it('never put a node that wants a czxid of its own beside another of the same directory', async () => {
    const zk = await client()
    const [a, b] = [await folder(zk), await folder(zk)]
    const unique = { unique: true }
    const made = await Promise.all([
      zk.write(sequential(a)),
      zk.write(sequential(a, unique)),
      zk.write(sequential(b, unique)),
      zk.write(sequential(a)),
      zk.write(sequential(b, unique)),
    ])
    const inA = [made[0], made[1], made[3]].map(({ zxid }) => zxid)
    expect(new Set(inA).size).toBe(3)
    expect(made[2].zxid).toBe(made[1].zxid)
    expect(made[4].zxid).not.toBe(made[2].zxid)
  })

  it('do not share the refusal of one of them', async () => {
    const zk = await client()
    const at = await folder(zk)
    const results = await Promise.allSettled([
      zk.write(sequential(at)),
      zk.write({ kind: 'delete', path: `${at}/nothing` }),
      zk.write(sequential(at)),
      zk.write({ kind: 'create', path: at }),
    ])
    const codes = results.map((result) =>
      result.status === 'fulfilled' ? 'ok' : (result.reason as { code: string }).code,
    )
    expect(codes).toEqual(['ok', 'NO_NODE', 'ok', 'NODE_EXISTS'])
    expect((await zk.getChildren(at)).children).toHaveLength(2)
  })

  it('happen in order, and before what is asked for after them', async () => {
    const zk = await client()
    const at = await folder(zk)
    const made = zk.write({ kind: 'create', path: `${at}/a` })
    const gone = zk.write({ kind: 'delete', path: `${at}/a` })
    const kept = zk.write({ kind: 'create', path: `${at}/b`, data: 'Zürich' })
    const seen = zk.getChildren(at)
    const late = zk.write({ kind: 'create', path: `${at}/c` })
    expect((await seen).children).toEqual(['b'])
    await Promise.all([made, gone, kept, late])
    expect((await zk.getData(`${at}/b`)).data.toString()).toBe('Zürich')
  })

  it('respect the limit for one request, and speak of paths below a chroot', async () => {
    const top = await client()
    const at = await folder(top)
    const zk = await client({ chroot: at, maxRequest: 300 })
    const data = 'x'.repeat(150)
    const made = await Promise.all(
      Array.from({ length: 5 }, () =>
        zk.write({ kind: 'create', path: '/n-', mode: 'ephemeral-sequential', data }),
      ),
    )
    expect(paths(made)).toEqual(Array.from({ length: 5 }, (_, number) => `/n-000000000${number}`))
    await expect(zk.write({ kind: 'create', path: 'n' })).rejects.toMatchObject({ code: 'BAD_ARGUMENTS' })
    await expect(zk.write({ kind: 'create', path: '/n', data: data + data })).rejects.toMatchObject({
      code: 'BAD_ARGUMENTS',
    })
  })

  it('all fail when their reply is lost, whether they happened or not', async () => {
    const link = await FaultProxy.open(server)
    open.push(link)
    const [zk, other] = [await client({ port: link.port }), await client()]
    const at = await folder(other)
    const cut = link.cutReply()
    const lost = await Promise.allSettled([zk.write(sequential(at)), zk.write(sequential(at))])
    await cut
    for (const one of lost) {
      expect(one).toMatchObject({
        status: 'rejected',
        reason: { code: 'CONNECTION_LOSS', path: `${at}/n-` },
      })
    }
    expect((await other.getChildren(at)).children).toHaveLength(2)
    await zk.close()
    await expect(zk.write(sequential(at))).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('fail without having been sent when the connection ends in their turn', async () => {
    const sent: unknown[] = []
    const group = new WriteGroup((operation) => void sent.push(operation))
    const write = mergeable({ kind: 'delete', path: '/a' }, new Chroot(''))
    const lost = Promise.allSettled([group.add(write), group.add(write)])
    group.fail(new ZooKeeperError('CONNECTION_LOSS', 'gone'))
    group.close()
    expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(sent).toEqual([])
  })
})
