import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'

import { available, curator, zookeeper } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { Holdfast } from '../../../src/index.ts'
import { ZooKeeper } from '../../../src/stores/zookeeper/client/index.ts'
import { requestRevocation, zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { leftovers } from './kit.ts'

const here = (file: string): string => fileURLToPath(new URL(`curator/${file}`, import.meta.url))
const ROOT = '/locks'
const LONG = 120_000
/** A virtual machine takes a while to start. */
const JVM = { timeout: 20_000, interval: 50 }

interface Peer {
  readonly lines: string[]
  readonly process: ChildProcess
  /** Ends well, or rejects with what it said. */
  readonly done: Promise<void>
}

describe.skipIf(!available('zookeeper') || !available('curator'))(
  'beside Java processes that use Curator',
  () => {
    let server: Server
    let classes: string
    let folder: string
    let java: (main: string, ...args: string[]) => string[]
    const peers: Peer[] = []

    beforeAll(async () => {
      server = await zookeeper()
      classes = mkdtempSync(join(tmpdir(), 'holdfast-curator-'))
      java = await curator({ sources: [here('CuratorPeer.java')], dir: classes })
    })
    afterAll(async () => {
      await server.stop()
      rmSync(classes, { recursive: true, force: true })
    })
    afterEach(() => {
      for (const { process: child } of peers.splice(0)) child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    })

    const connect = (): string => `127.0.0.1:${server.port}`

    function start([command, ...args]: readonly string[]): Peer {
      const child = spawn(command as string, args, { stdio: ['ignore', 'pipe', 'pipe'] })
      const lines: string[] = []
      const errors: string[] = []
      createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
      createInterface({ input: child.stderr }).on('line', (line) => errors.push(line))
      const done = once(child, 'close').then(() => {
        if (lines.at(-1) !== 'DONE') throw new Error(`a peer failed:\n${errors.slice(0, 20).join('\n')}`)
      })
      done.catch(() => undefined)
      const peer = { lines, process: child, done }
      peers.push(peer)
      return peer
    }

    const inJava = (what: string, path: string, threads: number, rounds: number): Peer =>
      start(java('CuratorPeer', connect(), what, path, folder, String(threads), String(rounds)))
    const inNode = (what: string, name: string, loops: number, rounds: number, fair = 'turns'): Peer =>
      start([
        process.execPath,
        here('node-peer.mjs'),
        connect(),
        what,
        ROOT,
        name,
        folder,
        String(loops),
        String(rounds),
        fair,
      ])

    function witness(): string {
      folder = mkdtempSync(join(tmpdir(), 'holdfast-witness-'))
      writeFileSync(join(folder, 'counter'), '0')
      return `lock-${folder.slice(-6)}`
    }

    const ofTheLock = async (name: string): Promise<readonly string[]> =>
      (await leftovers(connect(), ROOT)).filter((path) => path.includes(name))

    it(
      'stands in one queue with them: 3,000 sections of two JVMs and two Node processes, and no two at once',
      async () => {
        const name = witness()
        const java1 = inJava('mutex', `${ROOT}/${name}`, 3, 200)
        const java2 = inJava('mutex', `${ROOT}/${name}`, 3, 200)
        const node1 = inNode('mutex', name, 3, 300, 'strict')
        const node2 = inNode('mutex', name, 3, 300)
        await Promise.all([java1, java2, node1, node2].map(({ done }) => done))
        expect(readFileSync(join(folder, 'counter'), 'utf8')).toBe('3000')
        expect(readdirSync(folder)).toEqual(['counter'])
        expect(await ofTheLock(name)).toEqual([])
      },
      LONG,
    )

    it(
      'shares a read-write lock with them: no reader ever meets a writer, nor does a writer that stays on to read',
      async () => {
        const name = witness()
        const all = [
          inJava('read-write', `${ROOT}/${name}`, 4, 150),
          inNode('read-write', name, 4, 150, 'strict'),
          inNode('read-write', name, 4, 150),
        ]
        await Promise.all(all.map(({ done }) => done))
        expect(readdirSync(folder)).toEqual(['counter'])
        expect(await ofTheLock(name)).toEqual([])
      },
      LONG,
    )

    it(
      'goes on as a reader beside their readers, and keeps their writers waiting until it leaves',
      async () => {
        const name = witness()
        const store = zookeeperStore(connect(), { root: ROOT })
        await using holdfast = new Holdfast(store)
        const lock = holdfast.readWriteLock(name)
        const lease = await lock.write.acquire()
        const queue = (): Promise<string[]> =>
          ofTheLock(name).then((paths) => paths.map((path) => path.slice(-18, -10)).sort())
        const reader = inJava('read', `${ROOT}/${name}`, 1, 1)
        await vi.waitFor(async () => expect(await queue()).toEqual(['__READ__', '__WRIT__']), JVM)
        const writer = inJava('write', `${ROOT}/${name}`, 1, 1)
        await vi.waitFor(async () => expect(await queue()).toEqual(['__READ__', '__WRIT__', '__WRIT__']), JVM)
        expect([reader.lines, writer.lines]).toEqual([[], []])
        await lock.downgrade(lease)
        await reader.done
        expect(reader.lines).toEqual(['HELD', 'DONE'])
        // Ours, and the writer that has been woken by what came and went, and waits for us again.
        expect(await queue()).toEqual(['__READ__', '__WRIT__'])
        await expect(Promise.race([writer.done, pause(500, 'waiting')])).resolves.toBe('waiting')
        expect(writer.lines).toEqual([])
        lease.assertHeld()
        expect(await lease.release()).toBe('released')
        await writer.done
        expect(writer.lines).toEqual(['HELD', 'DONE'])
        await store.close()
      },
      LONG,
    )

    it(
      'shares a semaphore with them: never more than three permits',
      async () => {
        const name = witness()
        const all = [
          inJava('semaphore', `${ROOT}/${name}`, 4, 40),
          inNode('semaphore', name, 4, 40),
          inNode('semaphore', name, 4, 40),
        ]
        await Promise.all(all.map(({ done }) => done))
        expect(readdirSync(folder)).toEqual(['counter'])
        expect(await ofTheLock(name)).toEqual([])
      },
      LONG,
    )

    it(
      'waits for a Java holder, can ask it to let go, and follows it',
      async () => {
        const name = witness()
        const holder = inJava('revocable', `${ROOT}/${name}`, 1, 1)
        await vi.waitFor(() => expect(holder.lines).toContain('HELD'), { timeout: 20_000 })
        const store = zookeeperStore(connect(), { root: ROOT })
        await using holdfast = new Holdfast(store)
        await using zk = new ZooKeeper(connect())
        await zk.connected()
        expect(await holdfast.mutex(name).tryAcquire()).toBeNull()
        const { holders } = await holdfast.inspect(name)
        expect(holders).toHaveLength(1)
        const waiting = holdfast.mutex(name).acquire()
        expect(await requestRevocation(zk, name, { root: ROOT })).toBe(1)
        await (await waiting).release()
        await holder.done
        expect(holder.lines).toEqual(['HELD', 'ASKED', 'DONE'])
        await store.close()
      },
      LONG,
    )

    it(
      'hears when a Java process asks for a lock that is held here',
      async () => {
        const name = witness()
        const asked: string[] = []
        const store = zookeeperStore(connect(), { root: ROOT, onRevocation: (lock) => void asked.push(lock) })
        await using holdfast = new Holdfast(store)
        const lease = await holdfast.mutex(name).acquire()
        const [node] = await ofTheLock(name)
        await inJava('revoke', node as string, 1, 1).done
        await vi.waitFor(() => expect(asked).toEqual([name]))
        lease.assertHeld()
        await lease.release()
        await store.close()
      },
      LONG,
    )
  },
)
