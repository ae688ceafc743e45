import { checkOptions, said } from '../../core/arguments.ts'
import type { Store, Unknown } from '../../core/contract.ts'
import { StoreUnavailableError } from '../../core/errors.ts'
import { redact } from '../../core/redact.ts'
import { driverFor } from './client/index.ts'
import { connectTo } from './client/of-url.ts'
import type { DriverName } from './client/of-url.ts'
import { failed } from './failure.ts'
import type { Driver } from './client/driver.ts'
import { REDIS_OPTIONS, storeOn } from './redis-store.ts'
import type { RedisStoreOptions } from './redis-store.ts'
import type { RedisStore } from './store.ts'
import { checkDriver } from './startup-checks.ts'
import type { StartupFinding } from './startup-checks.ts'
import { parseUrl } from './url.ts'
import type { RedisAddress } from './url.ts'

// Taken once: a user's fake timers must not reach locks.
const { performance } = globalThis

export interface OpenRedisOptions extends RedisStoreOptions {
  /** Which package to connect with. Default: `ioredis` if it is installed, else `redis`. */
  readonly driver?: DriverName | undefined
}

const REACH_MS = 5_000

/** Connects to the server behind a URL, and fails at once if it cannot be used. Closing the store ends the connection. */
export async function openRedisStore(url: string, given: OpenRedisOptions = {}): Promise<Store> {
  checkOptions(given, [...REDIS_OPTIONS, 'driver'], 'prefix')
  const { driver, ...options } = given
  const address = parseUrl(url)
  const { driver: named, ...settings } = address.options
  const own = driverFor(await connectTo(address, driver ?? named), true)
  const store = await storeOrNothing(own, { ...settings, ...said(options) })
  const problem =
    (await unlessRefused(own, address, () => store.probe(REACH_MS))) ?? (await wrongDatabase(own, address))
  if (problem === undefined) return store
  await store.close()
  throw unavailable(url, problem)
}

/** Nobody listens there, or the name is nobody's: more time will not help. Not for groups, which are found by trying. */
const REFUSED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'ECONNRESET', 'EHOSTUNREACH'])
/** A server that is being started gets so long. */
const REFUSED_MS = 500

async function unlessRefused(
  own: Driver,
  { kind }: RedisAddress,
  ask: () => Promise<Unknown | undefined>,
): Promise<Unknown | undefined> {
  const began = performance.now()
  let stop = (): void => {}
  const refused = new Promise<Unknown>((resolve) => {
    stop = own.onReady(() => {
      const reason = own.ready() ? undefined : own.notReadyBecause()
      const code = reason !== undefined && 'code' in reason ? String(reason.code) : ''
      if (REFUSED.has(code) && performance.now() - began >= REFUSED_MS) resolve(failed(reason))
    })
  })
  try {
    return await (kind === 'server' ? Promise.race([ask(), refused]) : ask())
  } finally {
    stop()
  }
}

/** One driver goes on in database 0 when the server does not have the one that was asked for, and says nothing. */
async function wrongDatabase(own: Driver, { database }: RedisAddress): Promise<Unknown | undefined> {
  if (database === 0) return undefined
  try {
    const [node] = await own.primaries()
    await node?.send(['select', String(database)])
    return undefined
  } catch (error) {
    return failed(error)
  }
}

/** What an operator should know of the server behind a URL before trusting it with locks. */
export async function checkRedis(
  url: string,
  { driver }: Pick<OpenRedisOptions, 'driver'> = {},
): Promise<readonly StartupFinding[]> {
  const address = parseUrl(url)
  const own = driverFor(await connectTo(address, driver ?? address.options.driver), true)
  const store = await storeOrNothing(own, address.options)
  try {
    const problem = await unlessRefused(own, address, () => store.reach(REACH_MS))
    if (problem !== undefined) throw unavailable(url, problem)
    const findings = await checkDriver(own)
    if (findings.some(({ code, level }) => code === 'role' && level === 'error')) return findings
    const refusal = (await store.probe(REACH_MS)) ?? (await wrongDatabase(own, address))
    return refusal === undefined ? findings : [...findings, takesNone(refusal)]
  } finally {
    await store.close()
  }
}

/** Options that are wrong must not leave a connection behind. */
export async function storeOrNothing(own: Driver, options: RedisStoreOptions): Promise<RedisStore> {
  try {
    return storeOn(own, options)
  } catch (error) {
    await own.close()
    throw error
  }
}

function takesNone({ cause }: Unknown): StartupFinding {
  const why = cause instanceof Error ? cause.message : 'no answer'
  return { level: 'error', code: 'writes', message: `takes no locks: ${why}` }
}

function unavailable(url: string, { cause, retryable }: Unknown): StoreUnavailableError {
  const why = cause instanceof Error ? cause.message : 'no answer'
  return new StoreUnavailableError(`The Redis server at ${redact(url)} cannot be used: ${why}`, {
    store: 'redis',
    cause,
    retryable,
  })
}
