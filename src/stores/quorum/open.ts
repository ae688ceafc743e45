import { checkOptions, said } from '../../core/arguments.ts'
import type { Store } from '../../core/contract.ts'
import { StoreUnavailableError } from '../../core/errors.ts'
import { redact } from '../../core/redact.ts'
import { linkTo } from '../redis/client.ts'
import { connectTo } from '../redis/drivers.ts'
import type { DriverName } from '../redis/drivers.ts'
import { storeOn } from '../redis/redis-store.ts'
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
  const stores = await Promise.all(
    address.nodes.map(async (node) => {
      const link = linkTo(await connectTo(parseUrl(node.url), driver), true)
      return storeOn(link, prefix === undefined ? {} : { prefix })
    }),
  )
  const quorum = new QuorumStore(stores, { ...address.options, ...said(options) })
  const problem = await quorum.reach()
  if (problem === undefined) return quorum
  await quorum.close()
  const { cause } = problem
  const message = `The quorum at ${redact(url)} cannot be used: ${reasonOf(cause)}`
  throw new StoreUnavailableError(message, { store: 'quorum', cause })
}
