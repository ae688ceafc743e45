import { randomInt } from 'node:crypto'
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

/** In which order servers are tried: a random one, so that clients spread, and each once before any comes again. */
export class Rotation {
  private readonly order: ServerAddress[]
  private next = 0

  constructor(
    servers: readonly ServerAddress[],
    random: (below: number) => number = (below) => randomInt(below),
  ) {
    this.order = [...servers]
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
    return server
  }
}
