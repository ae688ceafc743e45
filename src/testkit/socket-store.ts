import { connect } from 'node:net'
import type { Socket } from 'node:net'

import type { Capabilities, RenewAnswer, Store, StoreListener, Unknown, Watch } from '../core/contract.ts'
import { memoryStore } from '../stores/memory/index.ts'
import { decode, encode, Lines } from './socket-wire.ts'
import type { SocketMethod, SocketReply } from './socket-wire.ts'

export interface SocketAddress {
  readonly host: string
  readonly port: number
}

interface Connection {
  readonly socket: Socket
  readonly pending: Map<number, (answer: unknown) => void>
}

const memory = memoryStore().capabilities
const capabilities: Capabilities = {
  ...memory,
  reach: 'machine',
  guarantees: { ...memory.guarantees, partition: 'holds', storeRestart: 'breaks' },
}

/** A client of a `SocketServer`. One connection, made when it is needed and again after it broke. */
class SocketStore implements Store {
  readonly kind = 'socket'
  readonly capabilities: Capabilities = capabilities
  private readonly address: SocketAddress
  private readonly listeners = new Map<string, StoreListener>()
  private connection: Promise<Connection> | null = null
  private calls = 0
  private closed = false

  constructor(address: SocketAddress) {
    this.address = address
  }

  claim: Store['claim'] = async (request, timeout) => this.call('claim', [plain(request), timeout], timeout)

  renew: Store['renew'] = async (requests, timeout) => {
    const answers = await this.call<readonly RenewAnswer[] | Unknown>(
      'renew',
      [requests.map(plain), timeout],
      timeout,
    )
    return 'kind' in answers ? requests.map(() => answers) : answers
  }

  release: Store['release'] = async (claim, next, timeout) => {
    const args = [plain(claim), next === undefined ? undefined : plain(next), timeout]
    const answer = await this.call<Awaited<ReturnType<Store['release']>> | Unknown>('release', args, timeout)
    if (!('kind' in answer)) return answer
    return next === undefined ? { released: answer } : { released: answer, next: answer }
  }

  withdraw: Store['withdraw'] = async (claim, timeout) =>
    this.call('withdraw', [plain(claim), timeout], timeout)

  downgrade: NonNullable<Store['downgrade']> = async (claim, timeout) =>
    this.call('downgrade', [plain(claim), timeout], timeout)

  inspect: Store['inspect'] = async (name, timeout) => this.call('inspect', [name, timeout], timeout)

  list: Store['list'] = async (query, timeout) => this.call('list', [query, timeout], timeout)

  async watch(session: string, listener: StoreListener, timeout: number): Promise<Watch | Unknown> {
    await within(this.open(), timeout).catch(() => undefined)
    this.listeners.set(session, listener)
    const answer = await this.call<Watch | Unknown>('watch', [session, timeout], timeout)
    if (answer.kind === 'watching') return { kind: 'watching', stop: () => this.stop(session, timeout) }
    this.listeners.delete(session)
    return answer
  }

  async close(): Promise<void> {
    this.closed = true
    const { connection } = this
    this.connection = null
    const open = await connection?.catch(() => null)
    open?.socket.destroy()
  }

  private stop(session: string, timeout: number): void {
    this.listeners.delete(session)
    if (this.connection !== null) this.call('unwatch', [session], timeout).catch(() => undefined)
  }

  private async call<T>(method: SocketMethod, args: readonly unknown[], timeout: number): Promise<T> {
    const deadline = performance.now() + timeout
    try {
      const connection = await within(this.open(), timeout)
      const left = Math.max(0, deadline - performance.now())
      return (await within(this.send(connection, method, args), left)) as T
    } catch (cause) {
      // Whatever is late on this connection is not waited for: it may be half-open.
      if (cause instanceof TimedOut) this.drop()
      return { kind: 'unknown', cause } as T
    }
  }

  private send(
    { socket, pending }: Connection,
    method: SocketMethod,
    args: readonly unknown[],
  ): Promise<unknown> {
    this.calls += 1
    const id = this.calls
    return new Promise((resolve) => {
      pending.set(id, resolve)
      socket.write(encode({ id, method, args: args.map((arg) => arg ?? null) }))
    })
  }

  private open(): Promise<Connection> {
    if (this.closed) return Promise.reject(new Error('the store was closed'))
    this.connection ??= this.connect()
    return this.connection
  }

  private drop(): void {
    const { connection } = this
    this.connection = null
    connection?.then(({ socket }) => socket.destroy()).catch(() => undefined)
  }

  private async connect(): Promise<Connection> {
    const pending = new Map<number, (answer: unknown) => void>()
    const socket = connect({ ...this.address, noDelay: true })
    const connection = { socket, pending }
    const lines = new Lines()
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve)
      socket.on('error', reject)
      socket.on('data', (chunk) => {
        for (const line of lines.take(chunk)) this.received(pending, decode(line) as SocketReply)
      })
      socket.on('close', () => {
        reject(new Error('the connection was closed'))
        this.broke(socket, pending)
      })
    }).catch((cause: unknown) => {
      this.connection = null
      throw cause
    })
    for (const session of this.listeners.keys()) {
      await this.send(connection, 'watch', [session, 0])
      this.listeners.get(session)?.({ kind: 'gap' })
    }
    return connection
  }

  private broke(socket: Socket, pending: Connection['pending']): void {
    const cause = new Error('the connection was closed')
    for (const resolve of pending.values()) resolve({ kind: 'unknown', cause })
    pending.clear()
    this.connection
      ?.then((current) => current.socket === socket && (this.connection = null))
      .catch(() => undefined)
  }

  private received(pending: Connection['pending'], reply: SocketReply): void {
    if ('event' in reply) {
      this.listeners.get(reply.session)?.(reply.event)
      return
    }
    pending.get(reply.id)?.(reply.answer)
    pending.delete(reply.id)
  }
}

class TimedOut extends Error {}

async function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimedOut(`no answer within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Only the request's own fields: what a runtime passes in may be a larger object. */
function plain(given: object): Record<string, unknown> {
  const fields = ['name', 'id', 'weight', 'capacity', 'ttl', 'patience', 'tokens', 'whenBusy', 'owner']
  return Object.fromEntries(
    fields.flatMap((field) => (field in given ? [[field, Reflect.get(given, field)]] : [])),
  )
}

/** A store that is served by a `SocketServer`. */
export function socketStore(address: SocketAddress): Store {
  return new SocketStore(address)
}
