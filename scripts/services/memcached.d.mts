import type { Server, ServerOptions } from '../services.mjs'

export interface MemcachedOptions extends ServerOptions {
  /** The path of another build than the machine's own. */
  readonly command?: string
}

export function memcached(options?: MemcachedOptions): Promise<Server>

/** More builds to run the tests on: HOLDFAST_MEMCACHED_BUILDS, paths separated as in PATH. */
export function otherMemcachedBuilds(): readonly string[]
