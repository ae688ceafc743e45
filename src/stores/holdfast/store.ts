import { checkOptions } from '../../core/arguments.ts'
import type { Store } from '../../core/contract.ts'
import { parseAddress, showAddress } from './url.ts'
import { bearer } from './bearer.ts'
import { ServerConnection } from './connection.ts'
import { ServerStore } from './server-store.ts'

export interface HoldfastStoreOptions {
  /** The bearer token. Better here, read from a file, than in the URL. */
  readonly token?: string | undefined
  /** With `holdfasts://`: certificates to trust instead of the system's, as PEM. */
  readonly ca?: string | undefined
}

const OPTIONS: readonly (keyof HoldfastStoreOptions)[] = ['token', 'ca']

/** The locks of a lock server, on one connection. */
export class HoldfastStore extends ServerStore {
  constructor(url: string, options: HoldfastStoreOptions = {}) {
    checkOptions(options, OPTIONS, 'token')
    const { token, ca } = options
    const parsed = parseAddress(url)
    const dialling = { address: parsed.address, token: bearer(token ?? parsed.token), ca }
    super(showAddress(parsed.address), (owner) => new ServerConnection(dialling, owner))
  }
}

/** Locks at a lock server: `holdfast://host:7420`, `holdfasts://…` (TLS), `holdfast+unix:/path`. Connects when first used. */
export function holdfastStore(url: string, options: HoldfastStoreOptions = {}): Store {
  return new HoldfastStore(url, options)
}
