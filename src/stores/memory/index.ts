export { memoryStore } from './store.ts'
export type { MemoryStoreOptions } from './store.ts'
export { memoryNode } from './votes.ts'
export type { MemoryNodeOptions } from './votes.ts'
