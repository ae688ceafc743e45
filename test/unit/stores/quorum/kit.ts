import type { ClaimRequest, MaybePromise, Store, Unknown, Voter } from '../../../../src/core/contract.ts'
import { memoryNode, memoryStore } from '../../../../src/stores/memory/index.ts'
import type { QuorumClock } from '../../../../src/stores/quorum/index.ts'
import { VirtualEnv } from '../../../../src/testkit/virtual-env.ts'

export const TIMEOUT = 1_000
/** As long as the longest lease that a test takes. */
export const TTL = 10_000

export const SILENT: Unknown = { kind: 'unknown', cause: new Error('it is silent') }

export function request(name: string, id: string, more: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    name,
    id,
    ttl: TTL,
    weight: 1,
    capacity: 1,
    patience: 500,
    tokens: 1,
    whenBusy: 'try',
    owner: 'test',
    ...more,
  }
}

/** What a member does with one kind of request: `call` is what it would do by itself. */
export type Steer = (call: () => unknown, ...args: readonly unknown[]) => MaybePromise<unknown>

/** A member of a quorum that does what the test says, and otherwise what a memory store does. */
export interface Member {
  readonly store: Store
  /** The votes themselves, past what the test says. */
  readonly votes: ReturnType<typeof memoryNode>['votes']
  /** What each kind of request meets here. */
  readonly on: { [K in keyof Voter]?: Steer }
  /** How often each was asked, in order. */
  readonly asked: (keyof Voter)[]
}

export function member(env: VirtualEnv): Member {
  const node = memoryNode({ now: () => env.instant() })
  const on: Member['on'] = {}
  const asked: (keyof Voter)[] = []
  const votes = new Proxy(node.votes, {
    get(target, key: keyof Voter) {
      const own: unknown = Reflect.get(target, key)
      if (typeof own !== 'function') return own
      return (...args: unknown[]) => {
        asked.push(key)
        const call = (): unknown => Reflect.apply(own, target, args)
        return on[key] === undefined ? call() : on[key](call, ...args)
      }
    },
  })
  return { store: Object.assign(memoryStore(), { votes }) as Store, votes: node.votes, on, asked }
}

export interface World {
  readonly env: VirtualEnv
  readonly clock: QuorumClock
  readonly members: readonly Member[]
  readonly stores: readonly Store[]
}

export function world(count: number): World {
  const env = new VirtualEnv()
  const clock: QuorumClock = {
    now: () => env.mono(),
    setTimer(callback, ms) {
      const timer = env.setTimer(callback, ms, true)
      return () => timer.cancel()
    },
  }
  const members = Array.from({ length: count }, () => member(env))
  return { env, clock, members, stores: members.map(({ store }) => store) }
}

/** Never answers; what it was asked is done. */
export const heardOnly: Steer = (call) => {
  call()
  return new Promise(() => {})
}

export const never: Steer = () => new Promise(() => {})
export const fails: Steer = () => SILENT
export const failsAll: Steer = (_call, requests) => (requests as readonly unknown[]).map(() => SILENT)

/** Answers that are held back until the test lets them go, one after the other. */
export class Held {
  private readonly waiting: ((lost?: Unknown) => void)[] = []

  readonly steer: Steer = (call) =>
    new Promise((resolve) => this.waiting.push((lost) => resolve(lost ?? call())))

  get count(): number {
    return this.waiting.length
  }

  release(): void {
    this.waiting.shift()?.()
  }

  /** None of them was heard of. */
  drop(): void {
    for (const answer of this.waiting.splice(0)) answer(SILENT)
  }
}
