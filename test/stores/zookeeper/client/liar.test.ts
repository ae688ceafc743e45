import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { inspect } from 'node:util'

import { afterEach, describe, expect, it, vi } from 'vitest'

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

interface Greeting {
  /** Of the session. */
  readonly timeout?: number
  /** False: a connection whose client has seen so much is closed without a word. */
  readonly takes?: (lastZxid: bigint) => boolean
}

/** Greets with the session ids it is given, one for each connection that it takes, and answers as told. */
async function liar(
  sessions: readonly bigint[],
  reply: Reply,
  { timeout = 10_000, takes = () => true }: Greeting = {},
): Promise<Liar> {
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
          if (!takes(buffer.readBigInt64BE(start + 4))) return void socket.destroy()
          handshakes.push(buffer.readBigInt64BE(start + 16))
          const id = sessions[handshakes.length - 1] ?? 0n
          socket.write(
            message((writer) => {
              writer.int(0)
              writer.int(id === 0n ? 0 : timeout)
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
const SYNC = 9
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

  it('leaves a server that says nothing while there is time to renew locks by way of another', async () => {
    let silent = true
    const reply: Reply = (request, socket) => {
      if (!silent) honest(request, socket)
    }
    const server = await liar([5n, 5n], reply, { timeout: 2000 })
    const zk = client(server.connect)
    await zk.connected()
    const began = performance.now()
    await expect(zk.sync()).rejects.toMatchObject({ code: 'CONNECTION_LOSS' })
    // A lock is believed in for 1333 ms, and was renewed up to 444 ms before.
    expect(performance.now() - began).toBeLessThan(850)
    silent = false
    await zk.connected()
    await zk.sync()
    expect(server.handshakes).toEqual([0n, 5n])
  })

  it('leaves a connection with a message that never ends, whatever else arrives', async () => {
    let garbled = true
    const reply: Reply = (request, socket) => {
      // A bit of its length was flipped: all that follows seems to belong to it.
      if (garbled && request.opcode === SYNC) socket.write(Buffer.from([0, 16, 0, 16]))
      honest(request, socket)
    }
    const server = await liar([5n, 5n], reply, { timeout: 600 })
    const zk = client(server.connect)
    await zk.connected()
    await expect(zk.sync()).rejects.toMatchObject({ code: 'CONNECTION_LOSS' })
    garbled = false
    await zk.connected()
    await zk.sync()
    expect(server.handshakes).toEqual([0n, 5n])
  })

  it('keeps its session while no server takes it up, however long that lasts', async () => {
    let quorum = true
    let refused = 0
    const takes = (): boolean => {
      if (!quorum) refused++
      return quorum
    }
    const server = await liar(Array<bigint>(9).fill(5n), honest, { timeout: 100, takes })
    const zk = client(server.connect)
    await zk.connected()
    quorum = false
    // The answer is cut short, and so is the connection.
    await expect(zk.getData('/a')).rejects.toMatchObject({ code: 'CONNECTION_LOSS' })
    // Later and later: by then two timeouts are over.
    await vi.waitFor(() => expect(refused).toBeGreaterThan(4), { timeout: 5000 })
    expect(zk.state).toBe('disconnected')
    quorum = true
    await zk.connected()
    expect(zk.sessionId).toBe(5n)
  })

  it('gets over a transaction number that no server has come to', async () => {
    const far = 2n ** 60n
    const reply: Reply = ({ xid, opcode }, socket) => {
      if (opcode !== SYNC || server.handshakes.length > 1) return honest({ xid, opcode }, socket)
      socket.end(message(header(xid, { zxid: far })))
    }
    const server = await liar([5n, 5n], reply, { timeout: 300, takes: (lastZxid) => lastZxid < 100n })
    const zk = client(server.connect)
    await zk.connected()
    await zk.sync()
    await vi.waitFor(() => expect(zk.state).toBe('disconnected'))
    await zk.connected()
    await zk.sync()
    expect(server.handshakes).toEqual([0n, 5n])
  })

  it('shows neither its credentials nor those of its session', async () => {
    const server = await liar([5n], honest)
    const zk = client(server.connect, { auth: [{ scheme: 'digest', auth: 'me:secret' }] })
    await zk.connected()
    const shown = [inspect(zk, { depth: null, showHidden: false }), JSON.stringify(zk)].join()
    expect(shown).toContain("state: 'connected'")
    expect(shown).not.toMatch(/secret|password|credentials/)
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
