import { randomInt } from 'node:crypto'
import { lookup } from 'node:dns'
import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { ZooKeeperError } from './errors.ts'

export interface ServerAddress {
  readonly host: string
  readonly port: number
}

export interface ConnectString {
  readonly servers: readonly ServerAddress[]
  /** '' when there is none. */
  readonly chroot: string
}

const DEFAULT_PORT = 2181

/** `host1:2181,[::1]:2182,host3/chroot`, as all ZooKeeper clients write it. */
export function parseConnectString(text: string): ConnectString {
  const slash = text.indexOf('/')
  const hosts = slash === -1 ? text : text.slice(0, slash)
  const chroot = slash === -1 ? '' : text.slice(slash).replace(/\/+$/, '')
  return { servers: hosts.split(',').map((host) => parseAddress(host.trim())), chroot }
}

function parseAddress(text: string): ServerAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+(?:%[^\]\s]+)?)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = match?.[3] === undefined ? DEFAULT_PORT : Number(match[3])
  if (host === undefined || port < 1 || port > 65_535) {
    throw new ZooKeeperError(
      'BAD_ARGUMENTS',
      `Not a server address: ${JSON.stringify(text)}. Write host:port, and an IPv6 address as [::1]:port.`,
    )
  }
  return { host, port }
}

/** A dial to such a one would throw, in the middle of a failover. */
export function checkAddress({ host, port }: ServerAddress): void {
  const isHost = typeof (host as unknown) === 'string' && host !== ''
  if (isHost && Number.isInteger(port) && port >= 1 && port <= 65_535) return
  const shown = JSON.stringify({ host, port: typeof port === 'number' ? String(port) : port })
  throw new ZooKeeperError(
    'BAD_ARGUMENTS',
    `Not a server address: ${shown}. It needs a host, and a port from 1 to 65535.`,
  )
}

/** In which order servers are tried: a random one, so that clients spread, and each once before any comes again. */
export class Rotation {
  private readonly order: ServerAddress[]
  private next = 0
  /** How often all have been tried; from a random number on. */
  round: number

  constructor(
    servers: readonly ServerAddress[],
    random: (below: number) => number = (below) => randomInt(below),
  ) {
    this.order = [...servers]
    this.round = random(MANY)
    for (let last = this.order.length - 1; last > 0; last--) {
      const other = random(last + 1)
      const moved = this.order[last] as ServerAddress
      this.order[last] = this.order[other] as ServerAddress
      this.order[other] = moved
    }
  }

  get size(): number {
    return this.order.length
  }

  take(): ServerAddress {
    const server = this.order[this.next] as ServerAddress
    this.next = (this.next + 1) % this.order.length
    if (this.next === 0) this.round++
    return server
  }
}

const MANY = 2 ** 16

type Resolve = (
  host: string,
  options: { readonly all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/**
 * A name may stand for all servers of an ensemble. Then another address is the first with every round: the first one may take
 * connections, and serve none.
 */
export function addressesFrom(round: number, resolve: Resolve = lookup): LookupFunction {
  return (host, options, done) => {
    resolve(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return done(error, [])
      // Name servers change their order with every answer, so that by itself it does not say which was dialled before.
      const sorted = [...addresses].sort((one, other) => (one.address < other.address ? -1 : 1))
      const first = round % Math.max(1, sorted.length)
      const order = [...sorted.slice(first), ...sorted.slice(0, first)]
      if (options.all === true) done(null, order)
      else done(null, order[0]?.address ?? '', order[0]?.family)
    })
  }
}
