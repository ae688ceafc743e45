import { checkOptions, said } from '../../core/arguments.ts'
import type { Store } from '../../core/contract.ts'
import { StoreUnavailableError } from '../../core/errors.ts'
import { redact } from '../../core/redact.ts'
import { driverFor } from '../redis/client/index.ts'
import { connectTo } from '../redis/client/of-url.ts'
import type { DriverName } from '../redis/client/of-url.ts'
import { storeOrNothing } from '../redis/open.ts'
import { parseUrl } from '../redis/url.ts'
import { reasonOf } from './failure.ts'
import { QUORUM_OPTIONS } from './options.ts'
import type { QuorumOptions } from './options.ts'
import { QuorumStore } from './store.ts'
import { parseRedlockUrl } from './url.ts'

export interface OpenRedlockOptions extends QuorumOptions {
  /** Which package to connect with. Default: `ioredis` if it is installed, else `redis`. */
  readonly driver?: DriverName | undefined
  /** What all keys and channels begin with. Default `hf`. */
  readonly prefix?: string | undefined
}

/** Connects to the independent Redis servers behind a URL. Fails at once if fewer than a majority can be used. */
export async function openRedlockStore(url: string, given: OpenRedlockOptions = {}): Promise<Store> {
  checkOptions(given, [...QUORUM_OPTIONS, 'driver', 'prefix'], 'maxTtl')
  const { driver, prefix, ...options } = given
  const address = parseRedlockUrl(url)
  const places = address.nodes.map((node) => parseUrl(node.url))
  const stores = await Promise.all(
    places.map(async (at) => {
      const { driver: named, ...settings } = at.options
      const own = driverFor(await connectTo(at, driver ?? named), true)
      return storeOrNothing(own, prefix === undefined ? settings : { prefix })
    }),
  )
  const quorum = await quorumOrNothing(stores, { ...address.options, ...said(options) })
  const problem = await quorum.reach()
  if (problem === undefined) return quorum
  await quorum.close()
  const { cause, retryable } = problem
  const message = `The quorum at ${redact(url)} cannot be used: ${reasonOf(cause)}`
  throw new StoreUnavailableError(message, { store: 'quorum', cause, retryable })
}

/** Options that are wrong must not leave connections behind. */
async function quorumOrNothing(stores: readonly Store[], options: QuorumOptions): Promise<QuorumStore> {
  try {
    return new QuorumStore(stores, options)
  } catch (error) {
    await Promise.all(stores.map(async (store) => store.close()))
    throw error
  }
}
