import { expect } from 'vitest'

import type { Store } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import type { Lease } from '../../../src/runtime/lease.ts'

export interface GuardedRun {
  readonly store: Store
  /** Of another process. */
  readonly other: Store
  readonly name: string
  /** Runs the step in a transaction that the lease guards, and commits. */
  readonly guarded: (lease: Lease, inside: () => Promise<void>) => Promise<unknown>
}

const TTL = 1500

/**
 * A transaction that is guarded for longer than the ttl, beside a permit of another process and somebody who waits: for
 * settings under which it must not cost anybody anything.
 */
export async function expectGuardedRun({ store, other, name, guarded }: GuardedRun): Promise<void> {
  const [here, there] = [store, other].map((one) => new Holdfast(one, { ttl: TTL })) as [Holdfast, Holdfast]
  const lease = await here.semaphore(name, 2).acquire()
  const neighbour = await there.semaphore(name, 2).acquire()
  let granted = false
  const waiting = there
    .semaphore(name, 2)
    .acquire()
    .then((next) => {
      granted = true
      return next
    })
  await guarded(lease, () => new Promise((resolve) => setTimeout(resolve, 1.8 * TTL)))
  expect([lease.held, neighbour.held, granted]).toEqual([true, true, false])
  await lease.release()
  await (await waiting).release()
  await neighbour.release()
  await here.close()
  await there.close()
}

/**
 * Few enough not to be in each other's way; what went wrong with each. What failed is run once more by itself: a machine that gave this
 * process no time to renew is no setting, and what a setting breaks is broken every time.
 */
export async function someAtOnce(runs: readonly (() => Promise<readonly string[]>)[]): Promise<string[]> {
  const suspects: (() => Promise<readonly string[]>)[] = []
  for (let from = 0; from < runs.length; from += 8) {
    const some = runs.slice(from, from + 8)
    const failed = await Promise.all(some.map((run) => run()))
    suspects.push(...some.filter((_, index) => failed[index]?.length !== 0))
  }
  const failed: string[] = []
  for (const run of suspects) failed.push(...(await run()))
  return failed
}
