import fc from 'fast-check'

import { emptyQueue, sessionOf, step } from '../../../src/core/claim-queue.ts'
import type { Outcome, QueueCommand, QueueState } from '../../../src/core/claim-queue.ts'
import type { ClaimRequest } from '../../../src/core/contract.ts'

/** What a run of the claim queue is made of. Numbers that pick something count round. */
export type Action =
  | { readonly do: 'claim'; readonly session: number; readonly shape: Shape }
  | { readonly do: 'repeat'; readonly which: number }
  | { readonly do: 'renew'; readonly which: number; readonly tokens: number; readonly ttl: number }
  | { readonly do: 'release'; readonly which: number; readonly next?: Shape | undefined }
  | { readonly do: 'withdraw'; readonly which: number }
  | { readonly do: 'downgrade'; readonly which: number }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'reach'; readonly session: number; readonly can: boolean }

export interface Shape {
  readonly weight: number
  readonly ttl: number
  readonly patience: number
  readonly tokens: number
  readonly whenBusy: 'queue' | 'try'
}

export interface Done {
  readonly command: QueueCommand
  readonly outcome: Outcome<QueueCommand['kind']>
  /** Live waiters' ids before the command, first come first. */
  readonly waitedBefore: readonly string[]
  readonly heldBefore: readonly string[]
}

const SESSIONS = 4
const times = fc.constantFrom(10, 20, 50, 1000)

export const shapes = (capacity: number): fc.Arbitrary<Shape> =>
  fc.record({
    weight: fc.integer({ min: 1, max: capacity }),
    ttl: times,
    patience: times,
    tokens: fc.integer({ min: 1, max: 3 }),
    whenBusy: fc.constantFrom('queue', 'queue', 'queue', 'try'),
  })

export function actions(capacity: number): fc.Arbitrary<Action[]> {
  const which = fc.nat(200)
  const session = fc.nat(SESSIONS - 1)
  const shape = shapes(capacity)
  const usual: fc.Arbitrary<Action>[] = [
    fc.record({ do: fc.constant('claim'), session, shape }),
    fc.record({ do: fc.constant('claim'), session, shape }),
    fc.record({ do: fc.constant('renew'), which, tokens: fc.constantFrom(0, 0, 1, 3), ttl: times }),
    fc.record({ do: fc.constant('release'), which, next: fc.option(shape, { nil: undefined }) }),
    fc.record({ do: fc.constant('pass'), ms: fc.constantFrom(0, 1, 5, 10, 25) }),
  ]
  const rare: fc.Arbitrary<Action>[] = [
    fc.record({ do: fc.constant('repeat'), which }),
    fc.record({ do: fc.constant('withdraw'), which }),
    fc.record({ do: fc.constant('downgrade'), which }),
    fc.record({ do: fc.constant('reach'), session, can: fc.boolean() }),
  ]
  return fc.array(fc.oneof(...usual, ...rare), { maxLength: 40, size: 'max' })
}

/** The claim queue with a clock, and a memory of what was asked of it. */
export class QueueWorld {
  readonly state: QueueState
  readonly capacity: number
  readonly requests: ClaimRequest[] = []
  readonly withdrawn = new Set<string>()
  readonly unreachable = new Set<string>()
  ms = 1000
  private made = 0

  constructor(capacity: number, state: QueueState = emptyQueue()) {
    this.capacity = capacity
    this.state = state
  }

  /** Undefined when the action was no command, or picked from nothing. */
  act(action: Action): Done | undefined {
    if (action.do === 'pass') this.ms += action.ms
    else if (action.do === 'reach') {
      if (action.can) this.unreachable.delete(`s${action.session}`)
      else this.unreachable.add(`s${action.session}`)
    }
    const command = this.commandOf(action)
    return command === undefined ? undefined : this.run(command)
  }

  run(command: QueueCommand): Done {
    const waitedBefore = this.waiting()
    const heldBefore = this.holding()
    const outcome = step(this.state, command, this.now(), this.reachable)
    if (command.kind === 'withdraw') this.withdrawn.add(command.claim.id)
    return { command, outcome, waitedBefore, heldBefore }
  }

  now(): { ms: number; micros: number } {
    return { ms: this.ms, micros: this.ms * 1000 }
  }

  readonly reachable = (session: string): boolean => !this.unreachable.has(session)

  waiting(): string[] {
    return [...this.state.waiters.values()].filter((waiter) => waiter.keptUntil > this.ms).map(({ id }) => id)
  }

  holding(): string[] {
    return [...this.state.holders.values()].filter((holder) => holder.expiresAt > this.ms).map(({ id }) => id)
  }

  request(session: number, shape: Shape, capacity: number = this.capacity): ClaimRequest {
    this.made += 1
    const request = { name: 'n', id: `s${session}.${this.made}`, capacity, owner: 'test', ...shape }
    this.requests.push(request)
    return request
  }

  private commandOf(action: Action): QueueCommand | undefined {
    if (action.do === 'pass' || action.do === 'reach') return undefined
    if (action.do === 'claim') return { kind: 'claim', request: this.request(action.session, action.shape) }
    const picked = this.requests[action.which % this.requests.length]
    if (picked === undefined) return undefined
    switch (action.do) {
      case 'repeat':
        return { kind: 'claim', request: picked }
      case 'renew': {
        const { name, id, patience } = picked
        return { kind: 'renew', request: { name, id, patience, ttl: action.ttl, tokens: action.tokens } }
      }
      case 'withdraw':
        return { kind: 'withdraw', claim: picked }
      case 'downgrade':
        return { kind: 'downgrade', claim: picked }
      case 'release': {
        const session = Number(sessionOf(picked.id).slice(1))
        return { kind: 'release', claim: picked, next: action.next && this.request(session, action.next) }
      }
    }
  }
}

/** A grant that a command made: told in the answer, or pushed. */
export interface Grant {
  readonly id: string
  readonly token: bigint
  readonly count: number
  readonly contended: boolean
}

/** What a command's answer and notices say was granted, in the order of the tokens. */
export function grantsOf({ command, outcome, heldBefore }: Done): Grant[] {
  const grants: Grant[] = []
  for (const { event } of outcome.notices) if (event.kind === 'granted') grants.push(event)
  const { answer } = outcome
  const told = 'released' in answer ? answer.next : answer
  if (told?.kind === 'held') {
    const id = command.kind === 'release' ? command.next?.id : askerOf(command)
    const fresh = id !== undefined && !heldBefore.includes(id)
    const block = command.kind === 'renew' && command.request.tokens > 0
    if (fresh || block) grants.push({ id: id ?? '', ...told })
  }
  return grants.sort((a, b) => (a.token < b.token ? -1 : 1))
}

export function askerOf(command: QueueCommand): string {
  return 'request' in command ? command.request.id : command.claim.id
}
