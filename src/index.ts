export { open } from './open.ts'
export type { OpenOptions, StoreOptions } from './open.ts'
export { Holdfast } from './locks/holdfast.ts'
export type { CloseOnOptions, CloseOptions, LockInfo, PublicClaim, StripedLock } from './locks/holdfast.ts'
export type { Lock, ReadWriteLock, Semaphore } from './locks/lock.ts'
export type { LeaseSet, LockSet } from './locks/lock-set.ts'
export type { Returned } from './locks/run.ts'
export type {
  AcquireOptions,
  HoldfastOptions,
  LockOptions,
  PermitOptions,
  ReentrantOptions,
} from './locks/options.ts'
export type { CloseResult, LeftLock } from './runtime/closing.ts'
export type { AssertHeldOptions, Lease, ReleaseOutcome } from './runtime/lease.ts'
export type { LockEvents } from './runtime/events.ts'
export type { ClockOptions } from './runtime/clock.ts'
export type { Env, Timer } from './runtime/env.ts'
export type { Capabilities, Guarantee, Guarantees, Store } from './core/contract.ts'
export * from './core/errors.ts'
