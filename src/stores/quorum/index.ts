export { quorumStore } from './store.ts'
export type { QuorumOptions } from './options.ts'
