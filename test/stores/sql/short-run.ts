import { expect } from 'vitest'

import type { ClaimRequest, Store } from '../../../src/core/contract.ts'

let made = 0

export function request(name: string, more: Partial<ClaimRequest> = {}): ClaimRequest {
  const plain = { weight: 1, capacity: 1, ttl: 10_000, patience: 5000, tokens: 1, owner: 'test: Žofie 🔒' }
  return { name, id: `short.${(made += 1)}`, whenBusy: 'queue', ...plain, ...more }
}

const TIMEOUT = 5000

/** Once through everything a store does, alone and in a queue: for settings under which it must not make a difference. */
export async function expectShortRun(store: Store, name: string): Promise<void> {
  const [first, second, third] = [request(name), request(name), request(name)]
  const held = await store.claim(first, TIMEOUT)
  expect(held).toMatchObject({ kind: 'held', count: 1, contended: false })
  expect(await store.claim(second, TIMEOUT)).toMatchObject({ kind: 'queued' })
  expect(await store.renew([{ ...first, tokens: 0 }, second], TIMEOUT)).toMatchObject([
    { kind: 'renewed', contended: true },
    { kind: 'queued' },
  ])
  expect(await store.inspect(name, TIMEOUT)).toMatchObject({
    name,
    holders: [{ id: first.id, owner: first.owner }],
    waiters: [{ id: second.id, owner: second.owner }],
  })
  expect(await store.list({ prefix: name }, TIMEOUT)).toMatchObject({ names: [name] })
  expect(await store.release(first, third, TIMEOUT)).toMatchObject({
    released: { kind: 'released' },
    next: { kind: 'queued' },
  })
  const [granted] = await store.renew([second], TIMEOUT)
  expect(granted).toMatchObject({ kind: 'held' })
  if (granted?.kind === 'held' && held.kind === 'held') expect(granted.token).toBeGreaterThan(held.token)
  expect(await store.withdraw(third, TIMEOUT)).toEqual({ kind: 'released' })
  expect(await store.claim(third, TIMEOUT)).toEqual({ kind: 'busy' })
  expect(await store.release(second, undefined, TIMEOUT)).toEqual({ released: { kind: 'released' } })
}
