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

/** Long enough for a machine that is busy; so many at once, for each of them only waits. */
const TTL = 2500
const AT_ONCE = 16

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

type Run = () => Promise<readonly string[]>

/**
 * Some at a time; what went wrong with each. What failed is run once more: a machine that gave this process no time to renew is no setting,
 * and what a setting breaks is broken every time.
 */
export async function someAtOnce(runs: readonly Run[]): Promise<readonly string[]> {
  const suspects = await failing(runs, AT_ONCE)
  return (
    await failing(
      suspects.map(({ run }) => run),
      AT_ONCE / 4,
    )
  ).flatMap(({ why }) => why)
}

async function failing(
  runs: readonly Run[],
  atOnce: number,
): Promise<{ run: Run; why: readonly string[] }[]> {
  const ended: { run: Run; why: readonly string[] }[] = []
  for (let from = 0; from < runs.length; from += atOnce)
    ended.push(
      ...(await Promise.all(runs.slice(from, from + atOnce).map(async (run) => ({ run, why: await run() })))),
    )
  return ended.filter(({ why }) => why.length > 0)
}
