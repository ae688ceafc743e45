/** For authors of stores: the contract with its words, and the rule that every store follows, to run in one's own transaction. */

export { ALL } from './core/contract.ts'
export type {
  Busy,
  Capabilities,
  ClaimAnswer,
  ClaimInfo,
  ClaimRef,
  ClaimRequest,
  DowngradeAnswer,
  Downgraded,
  Guarantee,
  Guarantees,
  Held,
  ListPage,
  ListQuery,
  Lost,
  MaybePromise,
  Mismatch,
  NameInfo,
  NotHeld,
  Queued,
  ReleaseAnswer,
  ReleaseRequest,
  ReleaseResult,
  Released,
  RenewAnswer,
  RenewRequest,
  Renewed,
  Store,
  StoreEvent,
  StoreListener,
  Unknown,
  Watch,
} from './core/contract.ts'
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
