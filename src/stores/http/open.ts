import type { Store } from '../../core/contract.ts'
import { reached } from '../holdfast/reached.ts'
import { HttpStore } from './store.ts'
import type { HttpStoreOptions } from './store.ts'

/** Like `httpStore`, but fails at once if the server cannot be reached, and knows its capabilities. */
export async function openHttpStore(url: string, options: HttpStoreOptions = {}): Promise<Store> {
  return reached(new HttpStore(url, options))
}
