import type { Store, Unknown } from '../../core/contract.ts'
import { StoreUnavailableError, UnsupportedError } from '../../core/errors.ts'
import { redact } from '../../core/redact.ts'
import { isUnknown } from '../../core/unknown.ts'
import { startupFindings } from './startup-checks.ts'
import type { StartupFinding } from './startup-checks.ts'
import { MemcachedStore } from './store.ts'
import type { MemcachedStoreOptions } from './store.ts'

const REACH_MS = 5000

/** Like `memcachedStore`, but fails at once if the server cannot be reached or cannot keep locks. */
export async function openMemcachedStore(url: string, options: MemcachedStoreOptions = {}): Promise<Store> {
  const store = new MemcachedStore(url, options)
  const problem = await store.reach(REACH_MS)
  if (problem === undefined) return store
  store.close()
  throw unavailable(url, problem)
}

/** What an operator should know of a server before trusting it with locks, for `holdfast doctor`. */
export async function checkMemcached(
  url: string,
  options: MemcachedStoreOptions = {},
): Promise<readonly StartupFinding[]> {
  const store = new MemcachedStore(url, options)
  try {
    const report = await store.settings(REACH_MS)
    if (!isUnknown(report)) return startupFindings(report)
    const { cause } = report
    if (!(cause instanceof UnsupportedError)) throw unavailable(url, report)
    return [{ check: 'cas', level: 'error', message: cause.message }]
  } finally {
    store.close()
  }
}

function unavailable(url: string, { cause, retryable }: Unknown): Error {
  if (cause instanceof UnsupportedError) return cause
  const message = `memcached at ${redact(url)} cannot be used. Check that it runs and can be reached.`
  return new StoreUnavailableError(message, { store: 'memcached', cause, retryable })
}
