/** What a store has to answer to be one of a quorum's is in here too: a Voter, and its words. */

export { quorumStore } from './store.ts'
export type { QuorumOptions } from './options.ts'
export type { QuorumClock } from './clock.ts'
export { openRedlockStore } from './open.ts'
export type { OpenRedlockOptions } from './open.ts'
export type { ConfirmedRelease } from './release.ts'
export type * from '../../core/votes.ts'
