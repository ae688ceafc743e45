import { isIP } from 'node:net'

import type * as IoredisModule from 'ioredis'

import { DriverMissingError, InvalidArgumentError } from '../../../core/errors.ts'
import { absent, driver } from '../../../transport/driver.ts'
import type { Driver } from '../../../transport/driver.ts'
import type { RedisClient } from './index.ts'
import type { IoredisNode } from './ioredis.ts'
import { knowSentinels, SENTINEL_OPTIONS, sentinelOf } from './ioredis-sentinels.ts'
import type { NodeRedisCluster } from './node-redis-cluster.ts'
import type { PlainClient } from './node-redis.ts'
import { PrimaryClient } from './primary-client.ts'
import { SENTINEL_MS, Sentinels } from './sentinels.ts'
import type { Host, RedisAddress } from '../url.ts'

type Ioredis = Pick<typeof IoredisModule, 'Redis' | 'Cluster'>
/** What is used of the package `redis`. By shape: this type is in a public declaration, where no driver's may be. */
export interface NodeRedis {
  readonly createClient: () => { duplicate(options: object): PlainClient }
  readonly createCluster: (options: object) => NodeRedisCluster & { connect(): Promise<unknown> }
}

/**
 * Makes clients of whichever driver is installed. `ioredis` comes first: 5 and 6 alike take half of the processor time
 * that `redis` 6 takes, and `redis` 5 is no faster once commands travel together (`npm run bench` measures it).
 *
 * A lock must not be asked for by a command that the driver kept back or repeats after a reconnect: the store tells its
 * callers when a command did not get through, and they decide. So queues and repetitions are off.
 */

export type DriverName = 'ioredis' | 'redis'
const NAMES: readonly unknown[] = ['ioredis', 'redis'] satisfies DriverName[]

export async function connectTo(address: RedisAddress, wanted: DriverName | undefined): Promise<RedisClient> {
  let outdated: DriverMissingError | undefined
  if (wanted !== undefined && !NAMES.includes(wanted))
    throw new InvalidArgumentError('driver must be ioredis or redis', { argument: 'driver' })
  if (wanted !== 'redis') {
    // An old one may be there for another package, and the user's own be the other.
    const ioredis = await driver(IOREDIS).catch((error: unknown) => {
      if (!(error instanceof DriverMissingError)) throw error
      outdated = error
      return undefined
    })
    if (ioredis !== undefined) return withIoredis(ioredis, address)
    if (wanted === 'ioredis')
      throw outdated ?? missing('The package ioredis is not installed: npm install ioredis')
  }
  const redis = await driver(REDIS)
  if (redis !== undefined) return withNodeRedis(redis, address)
  const which = wanted === 'redis' ? 'npm install redis' : 'npm install ioredis (or: npm install redis)'
  throw outdated ?? missing(`The Redis store needs a driver: ${which}`)
}

const missing = (message: string): DriverMissingError => new DriverMissingError(message, { store: 'redis' })

const IOREDIS: Driver<Ioredis> = {
  module: 'ioredis',
  has: 'Redis',
  oldest: [5, 0],
  load: async () => {
    try {
      return await import('ioredis')
    } catch (error) {
      return absent(error, 'ioredis')
    }
  },
}

const REDIS: Driver<NodeRedis> = {
  module: 'redis',
  has: 'createClient',
  oldest: [4, 3],
  load: async () => {
    try {
      return await import('redis')
    } catch (error) {
      return absent(error, 'redis')
    }
  },
}

const CONNECT_MS = 5_000
/** Something between here and there may forget a connection on which nothing is said, and tell nobody. */
const KEEP_ALIVE_MS = 10_000
const retryDelay = (attempt: number): number => Math.min(20 * 2 ** Math.min(attempt, 6), 1_000)

function withIoredis({ Redis, Cluster }: Ioredis, address: RedisAddress): RedisClient {
  const { kind, hosts, user, password, database, tls, master, sentinelLogin: login } = address
  const common = {
    connectTimeout: CONNECT_MS,
    disconnectTimeout: 100,
    keepAlive: KEEP_ALIVE_MS,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    ...(user === undefined ? {} : { username: user }),
    ...(password === undefined ? {} : { password }),
    ...(tls ? { tls: {} } : {}),
  }
  const alone = { enableOfflineQueue: false, retryStrategy: retryDelay }
  if (kind === 'cluster') {
    const client = new Cluster([...hosts], {
      redisOptions: common,
      enableOfflineQueue: false,
      clusterRetryStrategy: retryDelay,
      slotsRefreshTimeout: 2_000,
      // Sixteen times; then the store tries another way. See moving.ts.
      retryDelayOnTryAgain: 20,
      // It would look names up by itself and connect to addresses, which are in nobody's certificate.
      ...(tls ? { dnsLookup: (name, done) => done(null, name) } : {}),
    })
    return quiet(client)
  }
  if (kind === 'sentinel') {
    const secured = tls ? { tls: {} } : {}
    const sentinels = new Sentinels(hosts, master ?? '', (at) =>
      sentinelOf(
        new Redis({
          connectTimeout: CONNECT_MS,
          keepAlive: KEEP_ALIVE_MS,
          ...secured,
          ...login,
          ...SENTINEL_OPTIONS,
          ...at,
        }) as IoredisNode,
      ),
    )
    const client = new Redis({
      ...common,
      ...alone,
      sentinels: [...hosts],
      name: master ?? '',
      db: database,
      sentinelRetryStrategy: retryDelay,
      sentinelCommandTimeout: SENTINEL_MS,
      ...(login?.username === undefined ? {} : { sentinelUsername: login.username }),
      ...(login === undefined ? {} : { sentinelPassword: login.password }),
      ...(tls ? { enableTLSForSentinelMode: true, sentinelTLS: {} } : {}),
    })
    return knowSentinels(quiet(client), sentinels)
  }
  const named = tls ? { tls: nameOf(hosts[0]) } : {}
  return quiet(new Redis({ ...common, ...alone, ...named, ...hosts[0], db: database }))
}

/** Whom to ask for by TLS: a proxy may lead elsewhere by that name. The drivers themselves ask for nobody. */
function nameOf({ host }: Host): { readonly servername?: string } {
  return isIP(host) === 0 ? { servername: host } : {}
}

export function withNodeRedis(
  { createClient, createCluster }: NodeRedis,
  address: RedisAddress,
): RedisClient {
  const { kind, hosts, user, password, database, tls, master, sentinelLogin: login } = address
  const socket = {
    connectTimeout: CONNECT_MS,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
    ...(tls ? { tls: true as const } : {}),
  }
  const common = {
    disableOfflineQueue: true,
    ...(user === undefined ? {} : { username: user }),
    ...(password === undefined ? {} : { password }),
  }
  if (kind === 'cluster') {
    const client = createCluster({
      rootNodes: hosts.map((at) => ({ socket: at })),
      defaults: { ...common, socket: { ...socket, reconnectStrategy: retryDelay } },
    })
    return connected(client)
  }
  const plain = patterns.get(createClient) ?? createClient()
  patterns.set(createClient, plain)
  const named = tls && kind === 'server' ? nameOf(hosts[0]) : {}
  const once = { ...socket, ...named, reconnectStrategy: false as const }
  const at = (host: Host, options: object): PlainClient =>
    plain.duplicate({ disableOfflineQueue: true, ...options, socket: { ...once, ...host } })
  if (kind === 'sentinel') {
    const sentinels = new Sentinels(hosts, master ?? '', (host) => at(host, login ?? {}))
    return connected(new PrimaryClient(sentinels, (host) => at(host, { ...common, database })))
  }
  return connected(new PrimaryClient(hosts[0], (host) => at(host, { ...common, database })))
}

/** Never connected. The driver writes a class with all commands for every new address, which takes it 30 ms; a copy has none. */
const patterns = new WeakMap<NodeRedis['createClient'], ReturnType<NodeRedis['createClient']>>()

/** An error event that nobody listens to would end the process; what goes wrong is in the answers. */
function quiet<C extends { on(event: 'error', listener: () => void): unknown }>(client: C): C {
  client.on('error', () => {})
  return client
}

/** Does not wait for the connection: the first request does, for as long as it may take. */
function connected<
  C extends { on(event: 'error', listener: () => void): unknown; connect(): Promise<unknown> },
>(client: C): C {
  quiet(client)
    .connect()
    .catch(() => {})
  return client
}
