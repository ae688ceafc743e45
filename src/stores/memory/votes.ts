import type { Instant } from '../../core/claim-queue.ts'
import type {
  ClaimRef,
  ConfirmAnswer,
  ConfirmRequest,
  ExtendAnswer,
  ExtendRequest,
  Free,
  ListPage,
  ListQuery,
  NotReady,
  ReleaseAnswer,
  Store,
  StoreListener,
  VoteAnswer,
  VoteInfo,
  Voter,
  VoteRef,
  VoteRequest,
  Watch,
} from '../../core/contract.ts'
import * as rule from '../../core/vote-cell.ts'
import type { CellAnswer, CellNotice, VoteCell } from '../../core/vote-cell.ts'
import { memoryStore } from './store.ts'

export interface MemoryNodeOptions {
  /** The clock; for tests. */
  readonly now?: (() => Instant) | undefined
}

// Taken once: a user's fake timers must not move a lease, or keep a waiter asleep.
const { performance, queueMicrotask } = globalThis
const { timeOrigin } = performance
const now = performance.now.bind(performance)
const systemNow = (): Instant => {
  const ms = now()
  return { ms, micros: Math.floor((timeOrigin + ms) * 1000) }
}

const SWEEP_AT = 1000
let nodes = 0

/** The rule of votes of core, one cell a name, in this process. */
export class MemoryVoter implements Voter {
  private cells = new Map<string, VoteCell>()
  private readonly listeners = new Map<string, StoreListener>()
  private readonly reachable = (session: string): boolean => this.listeners.has(session)
  private readonly now: () => Instant
  private readonly server = `memory ${++nodes}`
  /** When this node was first seen with nothing in its memory, or long before if it is known to be new. */
  private firstSeen: number | null = null
  private sweepAt = SWEEP_AT

  constructor({ now = systemNow }: MemoryNodeOptions = {}) {
    this.now = now
  }

  vote(request: VoteRequest): VoteAnswer {
    const now = this.now()
    const waiting = this.onProbation(request.probation, now)
    if (waiting !== undefined) return waiting
    return this.run(request.name, (cell, notices) => rule.vote(cell, request, now, notices)) as VoteAnswer
  }

  confirm(request: ConfirmRequest): ConfirmAnswer {
    return this.run(request.name, (cell) => rule.confirm(cell, request, this.now())) as ConfirmAnswer
  }

  extend(requests: readonly ExtendRequest[]): readonly ExtendAnswer[] {
    const now = this.now()
    return requests.map(
      (request) =>
        this.onProbation(request.probation, now) ??
        (this.run(request.name, (cell) => rule.extend(cell, request, now)) as ExtendAnswer),
    )
  }

  release(ref: VoteRef, tell: boolean): ReleaseAnswer {
    const how = { now: this.now(), tell, reachable: this.reachable }
    return this.run(ref.name, (cell, notices) => rule.release(cell, ref, how, notices)) as ReleaseAnswer
  }

  withdraw(ref: ClaimRef): ReleaseAnswer {
    const how = { now: this.now(), tell: true, reachable: this.reachable }
    return this.run(ref.name, (cell, notices) => {
      const answer = rule.release(cell, { ...ref, attempt: 0 }, how, notices)
      rule.withdraw(cell, ref, how.now)
      return answer
    }) as ReleaseAnswer
  }

  watch(session: string, listener: StoreListener): Watch {
    this.listeners.set(session, listener)
    return { kind: 'watching', stop: () => void this.listeners.delete(session) }
  }

  inspect(name: string): VoteInfo | Free {
    return rule.viewCell(this.cells.get(name) ?? rule.emptyCell(), name, this.now())
  }

  names({ prefix = '', limit = 100, cursor = '' }: ListQuery): ListPage {
    const now = this.now()
    const held = [...this.cells]
      .filter(([name, cell]) => name.startsWith(prefix) && !('kind' in rule.viewCell(cell, name, now)))
      .map(([name]) => name)
      .filter((name) => name > cursor)
      .sort()
    const names = held.slice(0, limit)
    return held.length > limit ? { names, cursor: names.at(-1) ?? '' } : { names }
  }

  identify(probation: number): { kind: 'node'; server: string; readyIn: number } {
    const readyIn = this.onProbation(probation, this.now())?.readyIn ?? 0
    return { kind: 'node', server: this.server, readyIn }
  }

  /** For tests: as if the process behind it had been started anew, with nothing. */
  forgetEverything(): void {
    this.cells = new Map()
    this.firstSeen = null
  }

  private onProbation(probation: number, { ms }: Instant): NotReady | undefined {
    this.firstSeen ??= probation === 0 ? -Infinity : ms
    const readyIn = this.firstSeen + probation - ms
    return readyIn > 0 ? { kind: 'not-ready', readyIn } : undefined
  }

  private run(name: string, step: (cell: VoteCell, notices: CellNotice[]) => CellAnswer): unknown {
    let cell = this.cells.get(name)
    if (cell === undefined) {
      if (this.cells.size >= this.sweepAt) this.sweep()
      cell = rule.emptyCell()
      this.cells.set(name, cell)
    }
    const notices: CellNotice[] = []
    const answer = step(cell, notices)
    // Not from inside the command: whoever is told may send the next one at once.
    for (const { session, event } of notices) queueMicrotask(() => this.listeners.get(session)?.(event))
    return answer.kind === 'granted' ? { ...answer, token: BigInt(answer.token) } : answer
  }

  /** The fence of a name need not be kept once the clock is past it. */
  private sweep(): void {
    const now = this.now()
    for (const [name, cell] of this.cells) {
      if (rule.isIdleCell(cell, now) && cell.fence < now.micros - 2_000_000) this.cells.delete(name)
    }
    this.sweepAt = Math.max(SWEEP_AT, this.cells.size * 2)
  }
}

/** A memory store that can be part of a quorum. For tests and simulations: a quorum in one process protects nothing. */
export function memoryNode(options: MemoryNodeOptions = {}): Store & { readonly votes: MemoryVoter } {
  return Object.assign(memoryStore(options), { votes: new MemoryVoter(options) })
}
