/** For authors of stores: the contract with its words, and the rule that every store follows, to run in one's own transaction. */

export * from './core/contract.ts'
export {
  emptyQueue,
  isIdle,
  isSpent,
  QueueState,
  sessionOf,
  step,
  view,
  WITHDRAWN_MS,
} from './core/claim-queue.ts'
export type { AnswerOf, Instant, Notice, Outcome, QueueCommand, Reachable } from './core/claim-queue.ts'
export { fromRecord, toRecord } from './core/queue-record.ts'
export type { QueueRecord } from './core/queue-record.ts'
export type { Holder, Waiter } from './core/queue-state.ts'
