import fc from 'fast-check'
import { expect } from 'vitest'

import { view } from '../../../src/core/claim-queue.ts'
import type { AnswerOf, QueueCommand } from '../../../src/core/claim-queue.ts'
import type { Store } from '../../../src/core/contract.ts'
import { actions, QueueWorld } from '../../unit/core/queue-world.ts'

export interface Subject {
  readonly store: Store
  /** Sets the clock that the store's statements read, in microseconds. */
  setClock(micros: number): Promise<void>
}

const TIMEOUT = 10_000
let names = 0

/** Real sequences of commands, to the store and to the rule in core, with the same clock: the same answers. */
export async function behavesLikeTheRule(subject: Subject, capacity: number, numRuns: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(actions(capacity), async (run) => {
      const name = `differential ${++names}`
      const world = new QueueWorld(capacity)
      let now = -1
      for (const action of run) {
        // A database cannot tell who can be reached: everybody can.
        if (action.do === 'reach') continue
        const done = world.act(action)
        if (done === undefined) continue
        if (now !== world.ms) await subject.setClock((now = world.ms) * 1000)
        const answer = await ask(subject.store, rename(done.command, name))
        expect(comparable(answer)).toEqual(comparable(done.outcome.answer))
        await sameView(subject.store, world, name)
      }
    }),
    { numRuns },
  )
}

/** Whatever the first answer was, a second run of the same command must not find more than the rule does. */
async function sameView(store: Store, world: QueueWorld, name: string): Promise<void> {
  const seen = await store.inspect(name, TIMEOUT)
  if ('kind' in seen) throw seen.cause
  const wanted = view(world.state, name, world.now())
  const byId = <T extends { readonly id: string }>(list: readonly T[]): T[] =>
    list.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  expect(byId(seen.holders)).toEqual(byId(wanted.holders))
  expect(seen.waiters).toEqual(wanted.waiters)
}

async function ask(store: Store, command: QueueCommand): Promise<AnswerOf[QueueCommand['kind']]> {
  switch (command.kind) {
    case 'claim':
      return store.claim(command.request, TIMEOUT)
    case 'renew': {
      const [answer] = await store.renew([command.request], TIMEOUT)
      if (answer === undefined) throw new Error('no answer')
      return answer
    }
    case 'release':
      return store.release(command.claim, command.next, TIMEOUT)
    case 'withdraw':
      return store.withdraw(command.claim, TIMEOUT)
    case 'downgrade':
      if (store.downgrade === undefined) throw new Error('no such method')
      return store.downgrade(command.claim, TIMEOUT)
  }
}

function rename(command: QueueCommand, name: string): QueueCommand {
  switch (command.kind) {
    case 'claim':
    case 'renew':
      return { ...command, request: { ...command.request, name } } as QueueCommand
    case 'release':
      return {
        ...command,
        claim: { ...command.claim, name },
        next: command.next && { ...command.next, name },
      }
    case 'withdraw':
    case 'downgrade':
      return { ...command, claim: { ...command.claim, name } }
  }
}

/** `retryAfter` is a lower bound in the rule, which may lag behind; here it is exact. */
function comparable(answer: unknown): unknown {
  return JSON.parse(
    JSON.stringify(answer, (key, value: unknown) => {
      if (key === 'retryAfter') return undefined
      return typeof value === 'bigint' ? String(value) : value
    }),
  )
}
