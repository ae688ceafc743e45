import type { Store } from '../../core/contract.ts'
import { StoreUnavailableError } from '../../core/errors.ts'
import { RefusedError } from './refused.ts'
import { HoldfastStore } from './store.ts'
import type { HoldfastStoreOptions } from './store.ts'

const REACH_MS = 5000

/** Like `holdfastStore`, but fails at once if the server cannot be reached, and knows its capabilities. */
export async function openHoldfastStore(url: string, options: HoldfastStoreOptions = {}): Promise<Store> {
  const store = new HoldfastStore(url, options)
  const unreached = await store.reach(REACH_MS)
  if (unreached === null) return store
  const { cause, retryable } = unreached
  store.close()
  const nobody = `The lock server at ${store.where} did not answer. Start one with \`holdfast serve\`, or check the address.`
  const message = cause instanceof RefusedError ? cause.message : nobody
  throw new StoreUnavailableError(message, { store: 'holdfast', cause, retryable })
}
