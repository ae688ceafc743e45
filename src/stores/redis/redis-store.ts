import { checkMs, checkOptions, checkWhole } from '../../core/arguments.ts'
import type { Store } from '../../core/contract.ts'
import { InvalidArgumentError, UnsupportedError } from '../../core/errors.ts'
import { capabilitiesOf } from './capabilities.ts'
import { driverFor, withDriver } from './client/index.ts'
import type { RedisClient } from './client/index.ts'
import { checkDurable, markDurable, severalServers } from './durable.ts'
import { markKey } from './keys.ts'
import type { Driver } from './client/driver.ts'
import { RedisStore } from './store.ts'

export interface RedisStoreOptions {
  /** What all keys and channels begin with. Default `hf`. */
  readonly prefix?: string | undefined
  /**
   * `hybrid` (default): tokens follow the server's clock and never fall behind the last one; nothing needs to be kept
   * for longer than a day. `durable`: tokens only count up, on a server that never loses a write; see
   * `prepareDurableFencing`.
   */
  readonly fencing?: 'hybrid' | 'durable' | undefined
  /** How many replicas must have a grant before it is believed. Default 0. */
  readonly replicas?: number | undefined
  /** Milliseconds that the replicas may take; then the claim is asked for again, or withdrawn. Default 100. */
  readonly replicaTimeout?: number | undefined
}

export const REDIS_OPTIONS: readonly (keyof RedisStoreOptions)[] = [
  'prefix',
  'fencing',
  'replicas',
  'replicaTimeout',
]
const MOST_REPLICAS = 100
const REPLICA_MS = { usual: 100, most: 10_000 }

/** Locks on a Redis server, a Sentinel group or a Cluster, through a client of yours. It stays yours: it is not closed. */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): Store {
  checkOptions(options, REDIS_OPTIONS, 'prefix')
  return storeOn(driverFor(client), options)
}

export function storeOn(driver: Driver, options: RedisStoreOptions): RedisStore {
  const { prefix = 'hf', fencing = 'hybrid', replicas = 0, replicaTimeout = REPLICA_MS.usual } = options
  checkPrefix(prefix, driver.keyPrefix)
  checkWhole('replicas', replicas, { min: 0, max: MOST_REPLICAS })
  checkMs('replicaTimeout', replicaTimeout, { min: 1, max: REPLICA_MS.most })
  const known: unknown = fencing
  if (known !== 'hybrid' && known !== 'durable') {
    throw new InvalidArgumentError("fencing must be 'hybrid' or 'durable'", { argument: 'fencing' })
  }
  const refusal = fencing === 'durable' ? severalServers(driver) : undefined
  if (refusal !== undefined) throw refusal
  const polled = driver.polled === true
  if (polled && replicas > 0) {
    throw new UnsupportedError(
      'replicas needs a client of ioredis or redis: only there WAIT follows a script on the same connection.',
      { store: 'redis' },
    )
  }
  return new RedisStore(driver, {
    prefix,
    capabilities: capabilitiesOf(fencing, polled ? 'poll' : 'push'),
    ...(fencing === 'durable'
      ? { durableMark: markKey(prefix), prepare: () => checkDurable(driver, prefix) }
      : {}),
    ...(replicas > 0 ? { replicas: { count: replicas, ms: replicaTimeout } } : {}),
  })
}

/**
 * Prepares a server for `fencing: 'durable'`. Once, when it is set up: the mark that this leaves is what tells a server
 * that still has its counters from one that came back empty.
 */
export async function prepareDurableFencing(
  client: RedisClient,
  { prefix = 'hf' }: { readonly prefix?: string } = {},
): Promise<void> {
  await withDriver(client, (driver) => {
    checkPrefix(prefix, driver.keyPrefix)
    return markDurable(driver, prefix)
  })
}

function checkPrefix(prefix: unknown, keyPrefix: string): asserts prefix is string {
  const refuse = (why: string): never => {
    throw new InvalidArgumentError(`prefix ${why}`, { argument: 'prefix' })
  }
  if (typeof prefix !== 'string' || !/^[^\s{}]{1,100}$/.test(prefix))
    return refuse('must be 1 to 100 characters without spaces and braces')
  // A lock and a vote in one key would be taken for each other.
  if (`${keyPrefix}${prefix}`.endsWith(':v'))
    refuse(
      'must not end in `:v`, also together with what the client puts before it: so do the keys of Redlock',
    )
}
