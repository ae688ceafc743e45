import type { Store } from '../../core/contract.ts'
import { reached } from './reached.ts'
import { HoldfastStore } from './store.ts'
import type { HoldfastStoreOptions } from './store.ts'

/** Like `holdfastStore`, but fails at once if the server cannot be reached, and knows its capabilities. */
export async function openHoldfastStore(url: string, options: HoldfastStoreOptions = {}): Promise<Store> {
  return reached(new HoldfastStore(url, options))
}
