import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { afterEach, describe, expect, it, vi } from 'vitest'

import type { Server } from '../../scripts/services.mjs'
import {
  available,
  clockShim,
  memcached,
  redis,
  redisCluster,
  redisCommand,
  sentinel,
} from '../../scripts/services.mjs'

const module = fileURLToPath(new URL('../../scripts/services.mjs', import.meta.url))
const running: Server[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()))
})

function track<T extends Server>(server: T): T {
  running.push(server)
  return server
}

/** A process that has ended but that nobody has asked about yet counts as gone: its new parent may be slow to ask. */
function alive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return process.platform !== 'linux' || !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}

function pidOf(server: Server): number {
  if (server.pid === undefined) throw new Error('not running')
  return server.pid
}

describe.skipIf(!available('redis'))('a Redis of one’s own', () => {
  it('answers on its port, and leaves neither process nor folder', async () => {
    const server = track(await redis())
    const socket = connect(server.port, server.host)
    socket.write('PING\r\n')
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(answer.toString()).toBe('+PONG\r\n')
    socket.destroy()

    const pid = pidOf(server)
    expect(existsSync(server.dir)).toBe(true)
    await server.stop()
    await server.stop()
    expect(alive(pid)).toBe(false)
    expect(existsSync(server.dir)).toBe(false)
  })

  it('keeps its data over SIGKILL when it writes them down', async () => {
    const server = track(await redis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] }))
    const { port } = server
    const before = pidOf(server)
    await redisCommand(server, 'SET', 'key', 'value')
    await server.kill('SIGKILL')
    expect(server.pid).toBeUndefined()
    await expect(redisCommand(server, 'PING')).rejects.toThrow('ECONNREFUSED')

    await server.restart({ keepData: true })
    expect(server.port).toBe(port)
    expect(server.pid).not.toBe(before)
    expect(await redisCommand(server, 'GET', 'key')).toBe('value')

    await server.restart({ keepData: false })
    expect(await redisCommand(server, 'GET', 'key')).toBeNull()
  })

  it('is silent while paused, and can be stopped even then', async () => {
    const server = track(await redis())
    await server.pause()
    await expect(redisCommand({ ...at(server), timeout: 200 }, 'PING')).rejects.toThrow('no answer')
    await server.resume()
    expect(await redisCommand(server, 'PING')).toBe('PONG')
    await server.pause()
    await server.stop()
    expect(existsSync(server.dir)).toBe(false)
  })

  it('keeps a folder that the caller brought', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'holdfast-kept-'))
    const server = track(await redis({ dir }))
    await server.stop()
    expect(existsSync(dir)).toBe(true)
    rmSync(dir, { recursive: true })
  })

  it('that cannot start says why', async () => {
    await expect(redis({ args: ['--no-such-option', 'x'] })).rejects.toThrow(
      /ended while starting[^]*no-such-option/,
    )
    const server = track(await redis())
    await expect(redis({ port: server.port })).rejects.toThrow('already in use')
  })

  it.each(['SIGKILL', 'SIGINT', 'SIGTERM'] as const)(
    'ends with the process that started it: %s',
    async (signal) => {
      const parent = spawn(process.execPath, [
        '--input-type=module',
        '--eval',
        `import { redis } from ${JSON.stringify(module)}
       const { pid, dir } = await redis()
       console.log(JSON.stringify({ pid, dir }))
       setInterval(() => {}, 1000)`,
      ])
      const [line] = (await once(parent.stdout, 'data')) as [Buffer]
      const { pid, dir } = JSON.parse(line.toString()) as { pid: number; dir: string }
      expect(alive(pid)).toBe(true)

      parent.kill(signal)
      await vi.waitUntil(() => !alive(pid) && !existsSync(dir), { timeout: 5_000 })
    },
  )

  it('does not keep the process that started it from ending', async () => {
    const code = `import { redis } from ${JSON.stringify(module)}; await redis()`
    const parent = spawn(process.execPath, ['--input-type=module', '--eval', code])
    expect(await once(parent, 'exit')).toEqual([0, null])
  })
})

describe.skipIf(!available('redis'))('Redis in company', () => {
  it('is no part of the job that a terminal ends by Ctrl-C: whoever started it may need it until its end', async () => {
    const pid = pidOf(track(await redis()))
    const groupOf = (of: number): number =>
      Number(execFileSync('ps', ['-o', 'pgid=', '-p', String(of)], { encoding: 'utf8' }))
    expect(groupOf(pid)).toBe(pid)
    expect(groupOf(pid)).not.toBe(groupOf(process.pid))
  })

  it('fails over to a replica when the primary of a sentinel group dies', async () => {
    const group = track(await sentinel({ replicas: 1, sentinels: 3, downAfter: 500 }))
    const old = await group.primary()
    expect(old).toBe(group.nodes[0])
    await old?.kill()
    await vi.waitUntil(async () => (await group.primary()) !== old, { timeout: 20_000, interval: 100 })
    const next = await group.primary()
    expect(next).toBe(group.nodes[1])
  })

  it('shares the slots of a cluster, with a replica for each primary', async () => {
    const cluster = track(await redisCluster({ primaries: 3, replicas: 1 }))
    const owners = await Promise.all(
      cluster.primaries.map((node) =>
        redisCommand(node, 'SET', 'key', 'value').catch((error: Error) => error.message),
      ),
    )
    // Exactly one of the three owns the slot of the key; the others name it.
    expect(owners.filter((answer) => answer === 'OK')).toHaveLength(1)
    expect(owners.filter((answer) => /^MOVED 12539 127\.0\.0\.1:\d+$/.test(String(answer)))).toHaveLength(2)
    for (const replica of cluster.replicas) {
      expect(await redisCommand(replica, 'ROLE')).toContain('slave')
    }
  })
})

describe.skipIf(!available('memcached'))('a memcached of one’s own', () => {
  it('starts, restarts empty, and is gone after stop', async () => {
    const server = track(await memcached())
    const pid = pidOf(server)
    await server.restart()
    expect(server.pid).not.toBe(pid)
    const last = pidOf(server)
    await server.stop()
    expect(alive(last)).toBe(false)
  })
})

describe.skipIf(process.platform !== 'linux' || !available('redis') || !available('cc'))(
  'the clock shim',
  () => {
    it('moves the wall clock of one server, forward and back, while it runs', async () => {
      const clock = await clockShim()
      const server = track(await redis({ env: clock.env }))
      await redisCommand(server, 'SET', 'key', 'value', 'PX', 10_000)
      const left = async (): Promise<number> => Number(await redisCommand(server, 'PTTL', 'key'))
      expect(await left()).toBeGreaterThan(8_000)

      clock.jump(8_000)
      expect(await left()).toBeLessThanOrEqual(2_000)
      clock.jump(-60_000)
      expect(await left()).toBeGreaterThan(52_000)

      const untouched = track(await redis())
      const seconds = async (of: Server): Promise<number> =>
        Number(((await redisCommand(of, 'TIME')) as string[])[0])
      expect((await seconds(untouched)) - (await seconds(server))).toBeGreaterThan(50)
      clock.dispose()
    })
  },
)

function at({ host, port }: Server): { host: string; port: number } {
  return { host, port }
}

it('programs in the folder that HOLDFAST_PROGRAMS names win over those of the machine', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-chosen-'))
  const program = join(folder, 'redis-server')
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
  try {
    const env = { ...process.env, HOLDFAST_PROGRAMS: folder }
    const said = execFileSync(process.execPath, [module, 'install', 'redis'], { env, encoding: 'utf8' })
    expect(said).toBe(`redis-server: ${program}\n`)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
