import { expect } from 'vitest'

import type { Store } from '../../../src/core/contract.ts'
import { request } from './short-run.ts'

/**
 * Claims that a server has never heard of, as one that was replaced has not of those that came since: as long as it only
 * reads, nothing is said of them. `spoil` has the connections that the store gets next lead to it.
 */
export async function expectNothingGone(store: Store, spoil: () => Promise<void>): Promise<void> {
  const there = request('used by another')
  expect(await store.claim(there, 5000)).toMatchObject({ kind: 'held' })
  const kinds: string[] = []
  for (const name of [there.name, 'never used there']) {
    const claim = request(name)
    const ask = async (answer: () => Promise<unknown>): Promise<void> => {
      await spoil()
      kinds.push(kindOf(await answer()))
    }
    await ask(async () => (await store.renew([{ ...claim, tokens: 0 }], 5000))[0])
    await ask(async () => (await store.renew([{ ...claim, tokens: 16 }], 5000))[0])
    await ask(
      async () =>
        (
          await store.renew(
            [there, claim].map((one) => ({ ...one, tokens: 16 })),
            5000,
          )
        )[1],
    )
    await ask(async () => store.downgrade?.(claim, 5000))
    await ask(async () => (await store.release(claim, undefined, 5000)).released)
    await ask(async () => store.withdraw(claim, 5000))
  }
  expect(kinds).toEqual(Array.from({ length: 12 }, () => 'unknown'))
}

const kindOf = (answer: unknown): string => (answer as { kind: string }).kind
