export { memcachedStore } from './store.ts'
export type { MemcachedStoreOptions } from './store.ts'
export { checkMemcached, openMemcachedStore } from './open.ts'
export type { StartupFinding } from './startup-checks.ts'
