import { checkFunction, checkOptions } from '../../core/arguments.ts'
import type { Store } from '../../core/contract.ts'
import { InvalidArgumentError } from '../../core/errors.ts'
import { redact } from '../../core/redact.ts'
import { bearer } from '../holdfast/bearer.ts'
import { ServerStore } from '../holdfast/server-store.ts'
import { HttpConnection } from './connection.ts'
import type { Endpoint, Fetch } from './post.ts'

export interface HttpStoreOptions {
  /** The bearer token. */
  readonly token?: string | undefined
  /** What sends the requests, where it is not the platform's own `fetch`. */
  readonly fetch?: Fetch | undefined
}

const OPTIONS: readonly (keyof HttpStoreOptions)[] = ['token', 'fetch']

/** The locks of a lock server, by `fetch` alone. */
export class HttpStore extends ServerStore {
  constructor(url: string, options: HttpStoreOptions = {}) {
    checkOptions(options, OPTIONS, 'token')
    const endpoint = endpointOf(url, options)
    super(new URL(endpoint.base).host, (owner) => new HttpConnection(endpoint, owner))
  }
}

function endpointOf(url: string, options: HttpStoreOptions): Endpoint {
  checkFunction('fetch', options.fetch)
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const fits =
    (parsed?.protocol === 'http:' || parsed?.protocol === 'https:') &&
    parsed.search === '' &&
    parsed.hash === ''
  if (parsed === undefined || !fits) {
    throw new InvalidArgumentError(
      `url must look like https://host or http://host:7420; got "${redact(String(url))}"`,
      { argument: 'url' },
    )
  }
  const { origin, pathname, username, password } = parsed
  if (username !== '' || password !== '')
    throw new InvalidArgumentError('url must not have a token in it: pass it as the option `token`', {
      argument: 'url',
    })
  // Not taken from the global once: a program may put another one there before it asks for a lock.
  const send: Fetch = options.fetch ?? ((to, request) => globalThis.fetch(to, request))
  return { base: origin + pathname.replace(/\/+$/, ''), token: bearer(options.token), fetch: send }
}

/** Locks at a lock server, from wherever there is `fetch`: workers at the edge, functions, browsers. Asks when first used. */
export function httpStore(url: string, options: HttpStoreOptions = {}): Store {
  return new HttpStore(url, options)
}
