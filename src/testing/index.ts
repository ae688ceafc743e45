/** For the tests of code that locks. */

export { TestLocks } from './test-locks.ts'
export type { TestLocksOptions } from './test-locks.ts'
export type { LockRecord } from './lock-log.ts'
