export { httpStore } from './store.ts'
export type { HttpStoreOptions } from './store.ts'
export type { Fetch } from './post.ts'
export { openHttpStore } from './open.ts'
