export { holdfastStore } from './store.ts'
export type { HoldfastStoreOptions } from './store.ts'
export { openHoldfastStore } from './open.ts'
