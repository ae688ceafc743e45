import type { NameInfo, Store } from '../../../core/contract.ts'
import type { Random } from '../../../testkit/random.ts'
import { Clocks } from '../clocks.ts'
import type { TrueTime } from '../clocks.ts'
import type { Network, Node } from '../network.ts'

/** What a simulated store is made of, and what can be done to it. */
export interface Backend {
  readonly nodes: readonly Node[]
  /** A process's own store, at the end of its network. */
  connect(network: Network, chance: Random): Store
  /** The node went down, and comes back with all of its memory or with what its durability kept. */
  restarted(node: number, memory: 'kept' | 'lost', wentDownAt: number): void
  /** The replica took over, with what had been written by then. */
  failedOver?(node: number, writtenBy: number): void
  /** A planned failover: everything is there, and those who listen do so at a replica. */
  handedOver?(node: number): void
  /** How many grants were told, and which of them had not been made. */
  messages?(): { readonly told: number; readonly wrong: readonly string[] }
  evict?(node: number, name: string): void
  /** The truth, without a network in between. */
  inspect(name: string): NameInfo
}

export interface BackendOptions {
  readonly now: TrueTime
  /** Calls back after so many milliseconds of true time. */
  readonly later: (ms: number, callback: () => void) => void
  readonly settings: Readonly<Record<string, string | number | boolean>>
  /** Of a claim queue: who looks on while it works. */
  readonly watched?: (store: Store) => Store
}

export function makeNode(index: number, now: TrueTime): Node {
  return { index, clocks: new Clocks(now), up: true }
}

export function makeNodes(count: number, now: TrueTime): readonly Node[] {
  return Array.from({ length: count }, (_, index) => makeNode(index, now))
}
