import type { Store } from '../../core/contract.ts'
import { StoreUnavailableError } from '../../core/errors.ts'
import { redact } from '../../core/redact.ts'
import { linkTo } from './client.ts'
import { connectTo } from './drivers.ts'
import type { DriverName } from './drivers.ts'
import { storeOn } from './redis-store.ts'
import type { RedisStoreOptions } from './redis-store.ts'
import { checkLink } from './startup-checks.ts'
import type { StartupFinding } from './startup-checks.ts'
import { parseUrl } from './url.ts'

export interface OpenRedisOptions extends RedisStoreOptions {
  /** Which package to connect with. Default: `ioredis` if it is installed, else `redis`. */
  readonly driver?: DriverName
}

const REACH_MS = 5_000

/** Connects to the server behind a URL, and fails at once if it cannot be used. Closing the store ends the connection. */
export async function openRedisStore(
  url: string,
  { driver, ...options }: OpenRedisOptions = {},
): Promise<Store> {
  const link = linkTo(await connectTo(parseUrl(url), driver), true)
  const store = storeOn(link, options)
  const problem = await store.reach(REACH_MS)
  if (problem === undefined) return store
  await store.close()
  throw unavailable(url, problem.cause)
}

/** What an operator should know of the server behind a URL before trusting it with locks. */
export async function checkRedis(
  url: string,
  { driver }: Pick<OpenRedisOptions, 'driver'> = {},
): Promise<readonly StartupFinding[]> {
  const link = linkTo(await connectTo(parseUrl(url), driver), true)
  const store = storeOn(link, {})
  try {
    const problem = await store.reach(REACH_MS)
    if (problem !== undefined) throw unavailable(url, problem.cause)
    return await checkLink(link)
  } finally {
    await store.close()
  }
}

function unavailable(url: string, cause: unknown): StoreUnavailableError {
  const why = cause instanceof Error ? cause.message : 'no answer'
  return new StoreUnavailableError(`The Redis server at ${redact(url)} cannot be used: ${why}`, {
    store: 'redis',
    cause,
  })
}
