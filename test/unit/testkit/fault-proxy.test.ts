import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import { FaultProxy } from '../../../src/testkit/fault-proxy.ts'

/** Sends back what it gets, and remembers it. */
class Echo {
  received = ''
  readonly sockets = new Set<Socket>()
  readonly server: Server = createServer((socket) => {
    this.sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => this.sockets.delete(socket))
    socket.on('data', (chunk: Buffer) => {
      this.received += chunk.toString()
      socket.write(chunk)
    })
  })

  async listen(path?: string): Promise<number> {
    this.server.listen(path ?? { port: 0, host: '127.0.0.1' })
    await once(this.server, 'listening')
    return path === undefined ? (this.server.address() as AddressInfo).port : 0
  }

  close(): void {
    this.server.close()
    for (const socket of this.sockets) socket.destroy()
  }
}

/** A client that keeps what it hears. */
class Caller {
  heard = ''
  readonly chunks: string[] = []
  ended: string | undefined
  readonly socket: Socket

  constructor(proxy: FaultProxy) {
    this.socket = connect(proxy.port, proxy.host)
    this.socket.setNoDelay(true)
    this.socket.on('data', (chunk: Buffer) => {
      this.heard += chunk.toString()
      this.chunks.push(chunk.toString())
    })
    this.socket.on('error', (error: NodeJS.ErrnoException) => (this.ended = error.code))
    this.socket.on('close', () => (this.ended ??= 'closed'))
  }

  async hears(text: string): Promise<void> {
    while (this.heard !== text) await once(this.socket, 'data')
  }

  async ends(): Promise<string | undefined> {
    if (!this.socket.closed) await new Promise((resolve) => void this.socket.once('close', resolve))
    return this.ended
  }
}

let echo: Echo
let proxy: FaultProxy
const callers: Caller[] = []

const call = (): Caller => {
  const caller = new Caller(proxy)
  callers.push(caller)
  return caller
}

beforeEach(async () => {
  echo = new Echo()
  proxy = await FaultProxy.open({ port: await echo.listen() })
})

afterEach(async () => {
  for (const caller of callers.splice(0)) caller.socket.destroy()
  await proxy.close()
  echo.close()
})

describe('the fault proxy', () => {
  it('passes bytes and ends through when nothing is wrong', async () => {
    const caller = call()
    caller.socket.write('hello')
    await caller.hears('hello')
    expect([proxy.connections, proxy.accepted]).toEqual([1, 1])
    caller.socket.end()
    expect(await caller.ends()).toBe('closed')
    await expect.poll(() => [proxy.connections, echo.sockets.size]).toEqual([0, 0])
    expect(proxy.accepted).toBe(1)
  })

  it('delivers late, in order, in the direction that was asked for', async () => {
    proxy.set('replies', { latency: 80 })
    const caller = call()
    const began = performance.now()
    caller.socket.write('a')
    await expect.poll(() => echo.received, { interval: 2 }).toBe('a')
    expect(performance.now() - began).toBeLessThan(80)
    caller.socket.write('b')
    await caller.hears('ab')
    expect(performance.now() - began).toBeGreaterThanOrEqual(80)
  })

  it('swallows bytes and the end of a half-open connection, for good', async () => {
    const caller = call()
    caller.socket.write('a')
    await caller.hears('a')
    proxy.set('requests', { blackhole: true })
    proxy.set('replies', { blackhole: true })
    caller.socket.write('b')
    for (const socket of echo.sockets) socket.write('c')
    const late = call()
    late.socket.write('d')
    await expect.poll(() => proxy.swallowed, { interval: 2 }).toBe(3)
    proxy.heal()
    caller.socket.write('e')
    const fresh = call()
    fresh.socket.write('f')
    await fresh.hears('f')
    expect([echo.received, caller.heard, caller.ended]).toEqual(['af', 'a', undefined])
  })

  it('keeps bytes on hold and delivers them when it heals', async () => {
    proxy.set('requests', { hold: true })
    const caller = call()
    caller.socket.write('kept')
    await once(caller.socket, 'connect')
    expect(echo.received).toBe('')
    proxy.heal()
    await caller.hears('kept')
  })

  it('resets every connection on command', async () => {
    const [first, second] = [call(), call()]
    first.socket.write('1')
    second.socket.write('2')
    await first.hears('1')
    await second.hears('2')
    proxy.reset()
    expect(await Promise.all([first.ends(), second.ends()])).toEqual(['ECONNRESET', 'ECONNRESET'])
    expect(proxy.connections).toBe(0)
    await expect.poll(() => echo.sockets.size).toBe(0)
  })

  it('cuts between a request and its reply', async () => {
    const caller = call()
    const cut = proxy.cutReply({ match: (chunk) => chunk.includes('claim'), skip: 1 })
    for (const text of ['ping;', 'claim 1;']) {
      caller.socket.write(text)
      await expect.poll(() => caller.heard.endsWith(text)).toBe(true)
    }
    caller.socket.write('claim 2;')
    await cut
    expect(await caller.ends()).toBe('ECONNRESET')
    expect(echo.received).toBe('ping;claim 1;claim 2;')
    expect(caller.heard).toBe('ping;claim 1;')
    const next = call()
    next.socket.write('claim 3;')
    await next.hears('claim 3;')
  })

  it('refuses connections, and takes them again on the same port', async () => {
    const { port } = proxy
    const open = call()
    open.socket.write('a')
    await open.hears('a')
    await proxy.refuse()
    expect(await call().ends()).toBe('ECONNREFUSED')
    open.socket.write('b')
    await open.hears('ab')
    await proxy.accept()
    expect(proxy.port).toBe(port)
    const again = call()
    again.socket.write('c')
    await again.hears('c')
  })

  it('slices packets', async () => {
    proxy.set('replies', { slice: 2 })
    const caller = call()
    caller.socket.write('abcdefgh')
    await caller.hears('abcdefgh')
    expect(caller.chunks.length).toBeGreaterThan(1)
  })

  it('tells the client when the server is not there', async () => {
    echo.close()
    expect(await call().ends()).toBe('ECONNRESET')
  })

  it('moves more than the buffers hold', async () => {
    const caller = call()
    const block = 'x'.repeat(4_000_000)
    caller.socket.write(block)
    await expect.poll(() => caller.heard.length, { timeout: 10_000 }).toBe(block.length)
  })

  it('leads to a unix socket, too', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'proxy-'))
    const other = new Echo()
    const path = join(folder, 'echo.sock')
    await other.listen(path)
    const local = await FaultProxy.open({ path })
    try {
      const caller = new Caller(local)
      callers.push(caller)
      caller.socket.write('over a path')
      await caller.hears('over a path')
      expect(other.received).toBe('over a path')
    } finally {
      await local.close()
      other.close()
      await rm(folder, { recursive: true })
    }
  })
})
