import { describe, expect, it } from 'vitest'

import { Holdfast } from '../../../src/index.ts'
import type { ClaimRequest, Held, ReleaseRequest, Store } from '../../../src/core/contract.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import type { Case } from '../../../src/testkit/case.ts'
import { checkedStore } from '../../../src/testkit/checked-store.ts'
import { conformance } from '../../../src/testkit/conformance.ts'
import { runCase } from '../../../src/testkit/run-case.ts'
import { changed, virtualTarget } from './lesser-stores.ts'

const held = (store: Store, change: (grant: Held) => unknown): Partial<Store> => ({
  claim: (request, timeout) => change(store.claim(request, timeout) as Held) as Held,
})

/** What an author leaves out or gets wrong, the case where it shows, and what has to be told. */
const mistakes: readonly [string, (store: Store) => unknown, string, string][] = [
  [
    'a note in the request',
    (store) => ({
      claim: (request: { name: string }, timeout: number) => {
        request.name = `locks:${request.name}`
        return store.claim(request as never, timeout)
      },
    }),
    'claim/free',
    'claim() threw: TypeError: Cannot assign to read only property',
  ],
  [
    'no answer',
    () => ({ claim: () => undefined }),
    'claim/free',
    'claim() must answer with one of the kinds held, queued, busy, mismatch, unknown; got undefined',
  ],
  [
    'a Boolean',
    () => ({ claim: () => true }),
    'claim/free',
    'claim() must answer with one of the kinds held, queued, busy, mismatch, unknown; got true',
  ],
  [
    'a thrown error',
    () => ({
      claim: () => {
        throw new Error('no table')
      },
    }),
    'claim/free',
    "claim() threw: Error: no table. Whatever can happen at run time is the answer { kind: 'unknown', cause }",
  ],
  [
    'a rejection',
    () => ({ release: () => Promise.reject(new Error('reset')) }),
    'release/frees',
    'release() threw: Error: reset',
  ],
  [
    'a token that is a number',
    (store) => held(store, (grant) => ({ ...grant, token: 7 })),
    'claim/free',
    'claim() granted with 7 as the token; it is a bigint',
  ],
  [
    'no tokens',
    (store) => held(store, (grant) => ({ ...grant, count: 0 })),
    'claim/free',
    'claim() granted with 0 as the count of tokens; it is 1 at least',
  ],
  [
    'no word about others',
    (store) => held(store, ({ kind, token, count }) => ({ kind, token, count })),
    'claim/free',
    'claim() says undefined for contended; it is true or false',
  ],
  [
    'one answer for a batch',
    () => ({ renew: () => ({ kind: 'renewed', contended: false }) }),
    'renew/extends',
    'renew() must answer with an array, one answer for each request',
  ],
  ['too few answers', () => ({ renew: () => [] }), 'renew/extends', 'renew() answered 0 of 1 requests'],
  [
    'a release without its half',
    () => ({ release: () => ({ kind: 'released' }) }),
    'release/frees',
    'release() must answer { released: { kind } }, with next when it was asked for; got an object of kind "released" with kind',
  ],
  [
    'nothing about what is next',
    (store) => ({
      release: (claim: never, _: never, timeout: number) => store.release(claim, undefined, timeout),
    }),
    'queue/fused',
    'release() was to queue again in the same step, and answered nothing about that',
  ],
  [
    'a watch without an end',
    () => ({ watch: () => ({ kind: 'watching' }) }),
    'claim/free',
    "watch() answered 'watching' without stop()",
  ],
  [
    'a message without its id',
    (store) => ({
      watch: (session: string, listener: (event: unknown) => void) =>
        store.watch(session, ({ kind }) => listener({ kind, name: 'x' }), 1),
    }),
    'events/granted',
    "an event 'contended' came without the id",
  ],
  [
    'a queue that is not claimed',
    (store) => ({ capabilities: { ...store.capabilities, queue: false } }),
    'claim/no-queue',
    "claim() answered 'queued', and capabilities.queue is false",
  ],
  [
    'a try that stands in line',
    (store) => ({
      claim: (request: ClaimRequest, timeout: number) =>
        store.claim({ ...request, whenBusy: 'queue' }, timeout),
    }),
    'claim/try-leaves-nothing',
    "claim() answered 'queued' to a claim that was not to wait (whenBusy: 'try')",
  ],
  [
    'half a grant for who queues again',
    (store) => ({
      release: async (claim: ReleaseRequest, next: ClaimRequest | undefined, timeout: number) => {
        const { released, next: answer } = await store.release(claim, next, timeout)
        return answer?.kind === 'held' ? { released, next: { kind: 'held' } } : { released, next: answer }
      },
    }),
    'queue/fused-alone',
    'release() granted with undefined as the token; it is a bigint',
  ],
  [
    'no table yet, behind an unknown',
    () => ({ claim: () => ({ kind: 'unknown', cause: new Error('no table') }) }),
    'claim/free',
    'the store answers, and not: no table',
  ],
  ['guards that is a flag', () => ({ guards: true }), 'claim/free', 'it has guards that is no method'],
  ['no renew', () => ({ renew: undefined }), 'claim/free', 'it has no method renew()'],
  ['no capabilities', () => ({ capabilities: undefined }), 'claim/free', 'it has no capabilities'],
  [
    'half of the capabilities',
    (store) => ({ capabilities: { ...store.capabilities, minTtl: undefined } }),
    'claim/free',
    'it has undefined as capabilities.minTtl',
  ],
  [
    'a list that is an array',
    () => ({ list: () => ['a'] }),
    'list/pages',
    'list() must answer { names }, with a cursor when there are more; got an array of 1',
  ],
  [
    'a thenable',
    // eslint-disable-next-line unicorn/no-thenable -- that is the mistake
    () => ({ withdraw: () => ({ then: () => {} }) }),
    'withdraw/holder',
    'withdraw() answered with a thenable that is no Promise',
  ],
]

describe("an author's mistake", () => {
  it.each(mistakes)('is told by name: %s', async (_, make, id, message) => {
    const testCase = conformance().find((candidate) => candidate.id === id) as Case
    const sound = virtualTarget(1)
    const store = await sound.createStore()
    const target = { ...sound, createStore: () => changed(store, make(store) as Partial<Store>) }
    const result = await runCase(testCase, target)
    expect(String(result.status === 'failed' && result.error)).toContain(message)
  })

  it('is told by name also where a lock is taken, as the cause', async () => {
    const broken = changed(memoryStore(), { claim: (() => undefined) as never })
    const holdfast = new Holdfast(checkedStore(broken))
    await expect(holdfast.mutex('x').tryAcquire()).rejects.toMatchObject({
      code: 'STORE_BROKEN',
      method: 'claim',
      cause: { message: expect.stringContaining('claim() must answer') as string },
    })
  })

  it.each([
    [() => Promise.resolve(true), 'guards() must answer true or false, at once; got'],
    [() => undefined, 'guards() must answer true or false, at once; got undefined'],
    [
      () => {
        throw new Error('no table')
      },
      'guards() threw: Error: no table',
    ],
  ])('is told of guards, which has no case of its own (%#)', (guards, message) => {
    const told: string[] = []
    const onFault = (fault: Error): number => told.push(fault.message)
    const store = checkedStore(changed(memoryStore(), { guards } as never), { onFault })
    expect(() => store.guards?.('a.1')).toThrow(message)
    expect(told).toEqual([expect.stringContaining(message) as string])
  })

  it('gives away no ids', () => {
    const broken = changed(memoryStore(), { claim: (() => ({ id: 'secret.1', state: 'held' })) as never })
    const store = checkedStore(broken)
    const request = {
      name: 'x',
      id: 'secret.1',
      weight: 1,
      capacity: 1,
      ttl: 1,
      patience: 1,
      tokens: 1,
      owner: 'o',
    }
    expect(() => store.claim({ ...request, whenBusy: 'try' }, 1)).toThrow('got an object with id, state')
    expect(() => store.claim({ ...request, whenBusy: 'try' }, 1)).not.toThrow('secret')
    for (const answer of ['secret.1', { kind: 'secret.1' }]) {
      const telling = checkedStore(changed(memoryStore(), { claim: (() => answer) as never }))
      expect(() => telling.claim({ ...request, whenBusy: 'try' }, 1)).toThrow('a text')
      expect(() => telling.claim({ ...request, whenBusy: 'try' }, 1)).not.toThrow('secret')
    }
  })

  it('is none where guards is left out by name', () => {
    const store = checkedStore(changed(memoryStore(), { guards: undefined } as never))
    expect('guards' in store).toBe(false)
  })
})
