import type { Store } from '../../core/contract.ts'
import { StoreUnavailableError } from '../../core/errors.ts'
import { RefusedError } from './refused.ts'
import type { ServerStore } from './server-store.ts'

const REACH_MS = 5000

/** The store, once its server has answered; otherwise it is closed. */
export async function reached(store: ServerStore): Promise<Store> {
  const unreached = await store.reach(REACH_MS)
  if (unreached === null) return store
  const { cause, retryable } = unreached
  store.close()
  const nobody = `The lock server at ${store.where} did not answer. Start one with \`holdfast serve\`, or check the address.`
  const message = cause instanceof RefusedError ? cause.message : nobody
  throw new StoreUnavailableError(message, { store: 'holdfast', cause, retryable })
}
