import type { Store } from '../core/contract.ts'

export interface StoreOptions {
  /** The bearer token for a lock server. Better here, read from a file, than in the URL. */
  readonly token?: string | undefined
  /** Certificates to trust instead of the system's when a lock server is reached by TLS, as PEM. */
  readonly ca?: string | undefined
}

/** `ttl`: what locks will be taken with where nothing else is said, for stores that can get ready for it. */
export type Opener = (url: string, options: StoreOptions, ttl?: number) => Promise<Store>

/**
 * One row a scheme: where each store is opened. It and its driver are loaded when a URL asks for them, and not before. What there is depends on
 * the platform; which of the tables is meant by `#openers`, package.json says ("imports").
 */
export type Openers = Readonly<Record<string, () => Promise<Opener>>>
