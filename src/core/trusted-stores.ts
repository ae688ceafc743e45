import type { Store } from './contract.ts'

/**
 * Stores of this package that only read what they are given. What goes to any other store is frozen, which costs as much as an eighth of an
 * acquire in memory, a hundredth of one on Redis, and nothing beside a slower request.
 */
export const trustedStores: WeakSet<Store> = new WeakSet()
