import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'

import { available, zookeeper } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { ALL } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/index.ts'
import { parseNode } from '../../../src/stores/zookeeper/position.ts'
import { ZooKeeper } from '../../../src/stores/zookeeper/client/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { adler32, setCreations } from './snapshot.ts'
import { MAX_SESSION_TIMEOUT } from './kit.ts'

const LAST = 2 ** 31 - 1

it('a checksum is that of the format', () => {
  expect(adler32(Buffer.from('Wikipedia'))).toBe(0x11e60398)
})

describe.skipIf(!available('zookeeper'))('a directory whose numbers come to their end', () => {
  let server: Server
  const open: { close(): unknown }[] = []
  const kept = <T extends { close(): unknown }>(one: T): T => {
    open.push(one)
    return one
  }
  const client = async (): Promise<ZooKeeper> => {
    const zk = kept(new ZooKeeper(`127.0.0.1:${server.port}`))
    await zk.connected()
    return zk
  }
  const holdfast = (): Holdfast =>
    kept(
      new Holdfast(zookeeperStore(`127.0.0.1:${server.port}`, { maxSessionTimeout: MAX_SESSION_TIMEOUT }), {
        wait: 20_000,
      }),
    )
  /** Restarts the server with directories in which so many nodes were created already. */
  const wear = async (creations: Readonly<Record<string, number>>): Promise<void> => {
    const zk = await client()
    for (const dir of Object.keys(creations)) await zk.createPath(dir)
    await zk.close()
    await server.kill('SIGKILL')
    // Only a snapshot tells of a counter; a start writes one, from the log of before.
    await server.restart({ keepData: true })
    await server.kill('SIGKILL')
    const data = join(server.dir, 'data/version-2')
    const newest = readdirSync(data)
      .filter((file) => file.startsWith('snapshot.'))
      .sort((a, b) => Number.parseInt(a.slice(9), 16) - Number.parseInt(b.slice(9), 16))
      .pop()
    const file = join(data, newest ?? '')
    writeFileSync(file, setCreations(readFileSync(file), creations))
    for (const log of readdirSync(data)) if (log.startsWith('log.')) rmSync(join(data, log))
    await server.restart({ keepData: true })
  }

  beforeAll(async () => void (server = await zookeeper()))
  afterAll(() => server.stop())
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close()
  })

  it('is emptied and made anew, and nobody meets anybody meanwhile', async () => {
    await wear({
      '/holdfast/mutex': LAST - 20,
      '/holdfast/both': LAST - 2,
      '/holdfast/permits/locks': LAST - 3,
    })
    const zk = await client()
    const probe = await zk.create('/holdfast/mutex/probe-lock-', { mode: 'ephemeral-sequential' })
    expect(parseNode(probe.path)?.sequence).toBe(LAST - 20)
    await zk.delete(probe.path)

    const inside = new Map<string, number>()
    let overlaps = 0
    const section = async (name: string, weight: number, capacity: number): Promise<void> => {
      const used = (inside.get(name) ?? 0) + weight
      if (used > capacity) overlaps++
      inside.set(name, used)
      await new Promise((resolve) => setTimeout(resolve, 2))
      inside.set(name, (inside.get(name) ?? 0) - weight)
    }
    const processes = [holdfast(), holdfast(), holdfast()]
    const rounds = Array.from({ length: 10 })
    await Promise.all(
      processes.map(async (each) => {
        for (const _ of rounds) {
          await Promise.all([
            each.mutex('mutex', { fair: 'strict' }).run(() => section('mutex', 1, 1)),
            each.readWriteLock('both', { fair: 'strict' }).read.run(() => section('both', 1, ALL)),
            each.readWriteLock('both', { fair: 'strict' }).write.run(() => section('both', ALL, ALL)),
            each.semaphore('permits', 2).run(() => section('permits', 1, 2)),
          ])
        }
      }),
    )
    expect(overlaps).toBe(0)
    const after = await zk.create('/holdfast/mutex/probe-lock-', { mode: 'ephemeral-sequential' })
    expect(parseNode(after.path)?.sequence).toBeLessThan(1000)
  })
})
