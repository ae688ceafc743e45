import type { Store } from '../core/contract.ts'

export interface StoreOptions {
  /** The bearer token for a lock server. Better here, read from a file, than in the URL. */
  readonly token?: string | undefined
  /** Certificates to trust instead of the system's when a lock server is reached by TLS, as PEM. */
  readonly ca?: string | undefined
  /** Redis and Redlock: what all keys and channels begin with. Default `hf`. */
  readonly prefix?: string | undefined
  /** Redis and Redlock: which package to connect with. Default: `ioredis` if it is installed, else `redis`. */
  readonly driver?: 'ioredis' | 'redis' | undefined
  /** Redis: where tokens come from. Default `hybrid`. */
  readonly fencing?: 'hybrid' | 'durable' | undefined
  /** Redis: how many replicas must have a grant before it is believed. Default 0. */
  readonly replicas?: number | undefined
  /** Redis: milliseconds that the replicas may take. Default 100. */
  readonly replicaTimeout?: number | undefined
}

/** `ttl`: what locks will be taken with where nothing else is said, for stores that can get ready for it. */
export type Opener = (url: string, options: StoreOptions, ttl?: number) => Promise<Store>

export interface Row {
  readonly load: () => Promise<Opener>
  /** What it can be told besides; credentials may be given for any. */
  readonly options?: readonly (keyof StoreOptions)[]
}

/**
 * One row a scheme: where each store is opened. It and its driver are loaded when a URL asks for them, and not before. What there is depends on
 * the platform; which of the tables is meant by `#openers`, package.json says ("imports").
 */
export type Openers = Readonly<Record<string, Row>>
