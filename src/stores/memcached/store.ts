import { checkOptions } from '../../core/arguments.ts'
import { printable } from '../../core/printing.ts'
import type { ConnectionOptions } from 'node:tls'

import type {
  Capabilities,
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  ListPage,
  ListQuery,
  MaybePromise,
  NameInfo,
  ReleaseAnswer,
  ReleaseResult,
  RenewAnswer,
  RenewRequest,
  Store,
  StoreListener,
  Unknown,
  Watch,
} from '../../core/contract.ts'
import { InvalidArgumentError, UnsupportedError } from '../../core/errors.ts'
import { isUnknown, unknownForGood } from '../../core/unknown.ts'
import { parseUrl } from './url.ts'
import { capabilities } from './capabilities.ts'
import { claim } from './claim.ts'
import { Client } from './client.ts'
import { Descriptions, inspect } from './inspect.ts'
import { Exchange } from './exchange.ts'
import type { StoreContext } from './exchange.ts'
import { Grants } from './grants.ts'
import { renew } from './renew.ts'
import { keysFor } from './keys.ts'
import { release, withdraw } from './release.ts'
import { asItIs } from './pending.ts'
import { Rivals } from './rivals.ts'
import { ServerClock } from './server-clock.ts'
import { readSettings } from './startup-checks.ts'
import type { ServerReport } from './startup-checks.ts'

export interface MemcachedStoreOptions {
  /** In front of all keys. Stores with different prefixes have nothing to do with each other. Default: what the URL says, or `holdfast:`. */
  readonly prefix?: string | undefined
  /** For a server with a list of users (-Y). Better here than in the URL. */
  readonly user?: string | undefined
  readonly password?: string | undefined
  /** With `memcacheds://`: certificates and the like. */
  readonly tls?: ConnectionOptions | undefined
}

const OPTIONS: readonly (keyof MemcachedStoreOptions)[] = ['prefix', 'user', 'password', 'tls']

// Taken once: a user's fake timers must not move a lease.
const { performance } = globalThis

const WATCHING: Watch = { kind: 'watching', stop: () => undefined }

export class MemcachedStore implements Store {
  readonly kind = 'memcached'
  readonly capabilities: Capabilities = capabilities
  private readonly context: StoreContext

  constructor(url: string, options: MemcachedStoreOptions) {
    checkOptions(options, OPTIONS, 'prefix')
    const { prefix, user, password, tls } = options
    const parsed = parseUrl(url)
    if (tls !== undefined && !parsed.tls) {
      throw new InvalidArgumentError('tls needs an url that begins with memcacheds://', { argument: 'tls' })
    }
    const keys = keysFor(prefix ?? parsed.prefix ?? 'holdfast:')
    const clock = new ServerClock()
    const client = new Client({
      address: parsed.address,
      user: user ?? parsed.user,
      password: password ?? parsed.password,
      tls: parsed.tls ? (tls ?? {}) : undefined,
      keys,
      clock,
    })
    this.context = {
      client,
      keys,
      clock,
      grants: new Grants(),
      descriptions: new Descriptions(),
      rivals: new Rivals(),
    }
  }

  claim(request: ClaimRequest, timeout: number): MaybePromise<ClaimAnswer> {
    if (request.capacity !== 1) return unsupported('semaphores and read-write locks')
    const exchange = this.begin(timeout)
    if (exchange instanceof Exchange) return claim(this.context, exchange, request)
    return exchange.then((begun) => (isUnknown(begun) ? begun : claim(this.context, begun, request)))
  }

  async renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    if (requests.length === 0) return []
    const exchange = await this.begin(timeout)
    if (isUnknown(exchange)) return requests.map(() => exchange)
    // All of them leave in one write.
    return Promise.all(requests.map((request) => renew(this.context, exchange, request)))
  }

  release(ref: ClaimRef, next: ClaimRequest | undefined, timeout: number): Promise<ReleaseResult> {
    const exchange = Exchange.begin(this.context, timeout, resultOf)
    const result =
      exchange instanceof Exchange
        ? release(this.context, exchange, ref)
        : exchange.then((begun) => (begun instanceof Exchange ? release(this.context, begun, ref) : begun))
    if (next === undefined) return result
    const until = performance.now() + timeout
    return result.then(async ({ released }) => {
      return { released, next: await this.claim(next, until - performance.now()) }
    })
  }

  async withdraw(ref: ClaimRef, timeout: number): Promise<ReleaseAnswer> {
    const exchange = await this.begin(timeout)
    return isUnknown(exchange) ? exchange : withdraw(this.context, exchange, ref)
  }

  /** memcached tells nobody anything: there will be no event. */
  watch(_session: string, _listener: StoreListener): Watch {
    return WATCHING
  }

  async inspect(name: string, timeout: number): Promise<NameInfo | Unknown> {
    const exchange = await this.begin(timeout)
    return isUnknown(exchange) ? exchange : inspect(this.context, exchange, name)
  }

  /**
   * `lru_crawler metadump` is left out on purpose: it walks the whole cache, one caller at a time, can be switched off, and
   * knows hashed names no more than anybody.
   */
  list(_query: ListQuery): ListPage | Unknown {
    return unsupported('list of names: it cannot say which keys it has. `inspect` works name by name')
  }

  /** What the server says of itself, for startup checks. */
  async settings(timeout: number): Promise<ServerReport | Unknown> {
    const exchange = await this.begin(timeout)
    return isUnknown(exchange) ? exchange : readSettings(exchange.connection, timeout)
  }

  /** Undefined: the server is there and will do. */
  async reach(timeout: number): Promise<Unknown | undefined> {
    const exchange = await this.begin(timeout)
    return isUnknown(exchange) ? exchange : undefined
  }

  close(): void {
    this.context.client.close()
  }

  private begin(timeout: number): Exchange | Promise<Exchange | Unknown> {
    return Exchange.begin(this.context, timeout, asItIs)
  }
}

const resultOf = (released: ReleaseAnswer): ReleaseResult => ({ released })

function unsupported(what: string): Unknown {
  const message = `The memcached store has no ${what}. Use the redis or the memory store.`
  return unknownForGood(new UnsupportedError(message, { store: 'memcached' }))
}

/** Locks in one memcached. Read docs/stores/memcached.md first: it is a cache, and forgets. */
export function memcachedStore(url: string, options: MemcachedStoreOptions = {}): Store {
  return new MemcachedStore(url, options)
}

// Not its client, its password or the ids of claims.
printable(MemcachedStore, 'Store', ({ kind }) => ({ kind }))
