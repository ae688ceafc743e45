import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'

import { afterEach, describe, expect, it } from 'vitest'

import { ZooKeeper } from '../../../../src/stores/zookeeper/client/index.ts'
import { FrameCutter } from '../../../../src/stores/zookeeper/client/frames.ts'
import { JuteWriter } from '../../../../src/stores/zookeeper/client/jute.ts'

/** Things that no healthy server says: a peer that says what the test tells it to. */

type Reply = (request: { readonly xid: number; readonly opcode: number }, socket: Socket) => void

interface Liar {
  readonly connect: string
  readonly handshakes: bigint[]
  /** How many times bytes arrived. */
  chunks(): number
  readonly requests: { readonly xid: number; readonly opcode: number }[]
}

const open: { close(): unknown }[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()))
})

function message(write: (writer: JuteWriter) => void): Buffer {
  const writer = new JuteWriter()
  writer.begin()
  write(writer)
  writer.end()
  return writer.take()
}

const header =
  (xid: number, { zxid = 1n, errno = 0 } = {}): ((writer: JuteWriter) => void) =>
  (writer) => {
    writer.int(xid)
    writer.long(zxid)
    writer.int(errno)
  }

/** Greets with the session ids it is given, one for each connection, and answers as told. */
async function liar(sessions: readonly bigint[], reply: Reply): Promise<Liar> {
  const handshakes: bigint[] = []
  const requests: { xid: number; opcode: number }[] = []
  const sockets = new Set<Socket>()
  let chunks = 0
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    const cutter = new FrameCutter(1_000_000)
    let greeted = false
    socket.on('data', (chunk) => {
      chunks++
      cutter.push(chunk, (buffer, start) => {
        if (!greeted) {
          greeted = true
          handshakes.push(buffer.readBigInt64BE(start + 16))
          const id = sessions[handshakes.length - 1] ?? 0n
          socket.write(
            message((writer) => {
              writer.int(0)
              writer.int(id === 0n ? 0 : 10_000)
              writer.long(id)
              writer.bytes(Buffer.alloc(16))
              writer.bool(false)
            }),
          )
          return
        }
        const request = { xid: buffer.readInt32BE(start), opcode: buffer.readInt32BE(start + 4) }
        requests.push(request)
        reply(request, socket)
      })
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.push({
    close: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(resolve))
    },
  })
  return {
    connect: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    handshakes,
    requests,
    chunks: () => chunks,
  }
}

function client(connect: string, options = {}): ZooKeeper {
  const zk = new ZooKeeper(connect, { sessionTimeout: 10_000, ...options })
  open.unshift(zk)
  return zk
}

const CLOSE = -11
const honest: Reply = ({ xid }, socket) => void socket.write(message(header(xid)))

describe('a ZooKeeper client', () => {
  it('takes another session id than the one it asked for as the end of its session', async () => {
    const server = await liar([5n, 6n], ({ xid, opcode }, socket) => {
      if (opcode === CLOSE) honest({ xid, opcode }, socket)
      else socket.destroy()
    })
    const zk = client(server.connect)
    const states: string[] = []
    zk.onState((state) => states.push(state))
    await zk.connected()
    await expect(zk.sync()).rejects.toMatchObject({ code: 'CONNECTION_LOSS' })
    await expect(zk.connected()).rejects.toMatchObject({ code: 'SESSION_EXPIRED' })
    expect(server.handshakes).toEqual([0n, 5n])
    expect(states).toEqual(['connected', 'disconnected', 'expired'])
    await expect(zk.sync()).rejects.toMatchObject({ code: 'SESSION_EXPIRED' })
  })

  it('leaves a connection whose answers come in the wrong order, and keeps its session', async () => {
    let lies = 1
    const server = await liar([5n, 5n], (request, socket) => {
      if (lies-- > 0) socket.write(message(header(request.xid + 1)))
      else honest(request, socket)
    })
    const zk = client(server.connect)
    await zk.connected()
    await expect(zk.sync()).rejects.toMatchObject({ code: 'CONNECTION_LOSS' })
    await zk.connected()
    await zk.sync()
    expect(server.handshakes).toEqual([0n, 5n])
  })

  it.each([
    ['a frame of two gigabytes', Buffer.from([0x7f, 0xff, 0xff, 0xff])],
    ['bytes that are no message', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['an empty message', Buffer.alloc(4)],
  ])('leaves a server that sends %s', async (_, bytes) => {
    let lies = 1
    const server = await liar([5n, 5n], (request, socket) => {
      if (lies-- > 0) socket.write(bytes)
      else honest(request, socket)
    })
    const zk = client(server.connect)
    await zk.connected()
    await expect(zk.sync()).rejects.toMatchObject({ code: 'CONNECTION_LOSS' })
    await zk.connected()
    await zk.sync()
  })

  it('goes on with request number 1 after the largest', async () => {
    const server = await liar([5n], honest)
    const zk = client(server.connect, { firstXid: 2 ** 31 - 2 })
    await zk.connected()
    await Promise.all([zk.sync(), zk.sync(), zk.sync()])
    expect(server.requests.filter(({ opcode }) => opcode === 9).map(({ xid }) => xid)).toEqual([
      2 ** 31 - 2,
      2 ** 31 - 1,
      1,
    ])
  })

  it('reads answers that arrive in single bytes', async () => {
    const server = await liar([5n], ({ xid }, socket) => {
      for (const byte of message(header(xid))) socket.write(Buffer.from([byte]))
    })
    const zk = client(server.connect)
    await zk.connected()
    await Promise.all([zk.sync(), zk.sync()])
    expect(server.handshakes).toHaveLength(1)
  })

  it('does not let half an answer spoil the next connection', async () => {
    let lies = 1
    const server = await liar([5n, 5n], (request, socket) => {
      if (lies-- > 0) socket.end(message(header(request.xid)).subarray(0, 9))
      else honest(request, socket)
    })
    const zk = client(server.connect)
    await zk.connected()
    await expect(zk.sync()).rejects.toMatchObject({ code: 'CONNECTION_LOSS' })
    await zk.connected()
    await zk.sync()
  })

  it('ends for good when its credentials are refused, and does not show them', async () => {
    const server = await liar([5n], ({ xid, opcode }, socket) => {
      socket.write(message(header(xid, { errno: opcode === 100 ? -115 : 0 })))
    })
    const zk = client(server.connect, { auth: [{ scheme: 'digest', auth: 'user:secret' }] })
    const failure = await zk
      .connected()
      .then(() => zk.sync())
      .catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'AUTH_FAILED' })
    expect(JSON.stringify(failure) + String(failure)).not.toContain('secret')
    expect(zk.state).toBe('auth-failed')
  })

  it('refuses a request that the server would drop the connection for, and goes on', async () => {
    const server = await liar([5n], honest)
    const zk = client(server.connect)
    await zk.connected()
    await expect(zk.setData('/a', Buffer.alloc(2_000_000))).rejects.toMatchObject({ code: 'BAD_ARGUMENTS' })
    await expect(zk.setData('/a', 'x', 2 ** 40)).rejects.toMatchObject({ code: 'BAD_ARGUMENTS' })
    await expect(zk.delete('a')).rejects.toMatchObject({ code: 'BAD_ARGUMENTS' })
    await zk.sync()
    expect(server.handshakes).toHaveLength(1)
  })

  it('writes all requests of a turn of the event loop at once', async () => {
    const server = await liar([5n], honest)
    const zk = client(server.connect)
    await zk.connected()
    const before = server.chunks()
    await Promise.all(Array.from({ length: 100 }, () => zk.sync()))
    expect(server.requests.filter(({ opcode }) => opcode === 9)).toHaveLength(100)
    expect(server.chunks() - before).toBe(1)
  })

  it('can be closed right after it was made, and before any server was found', async () => {
    const server = await liar([5n], honest)
    const zk = client(server.connect)
    await zk.close()
    expect(zk.state).toBe('closed')
    const nowhere = new ZooKeeper('127.0.0.1:1')
    await nowhere.close()
    await expect(nowhere.connected()).rejects.toMatchObject({ code: 'CLOSED' })
  })
})
