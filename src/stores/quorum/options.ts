import { checkMs } from '../../core/arguments.ts'
import type { Store } from '../../core/contract.ts'
import { InvalidArgumentError } from '../../core/errors.ts'
import { systemClock } from './clock.ts'
import type { QuorumClock } from './clock.ts'

export interface QuorumOptions {
  /**
   * The longest lease that anybody may take. Every client must give the same: a store that comes back empty looks on for
   * as long, until nothing that it forgot can still be held. Milliseconds. Default 30,000.
   */
  readonly maxTtl?: number | undefined
  /**
   * `now`: stores that are empty vote at once. Right when the whole quorum is set up for the first time; later it takes
   * away what protects from a store that lost its memory. Default `wait`.
   */
  readonly setUp?: 'wait' | 'now' | undefined
  /** How long to wait for one store's vote. Milliseconds. Default: a 200th of the lease, but at least 50. */
  readonly nodeTimeout?: number | undefined
  /** What the stores are called in errors. Default: their kind and number. */
  readonly labels?: readonly string[] | undefined
  /** Clock and timers; for tests. */
  readonly clock?: QuorumClock | undefined
}

export const QUORUM_OPTIONS: readonly (keyof QuorumOptions)[] = [
  'maxTtl',
  'setUp',
  'nodeTimeout',
  'labels',
  'clock',
]

export interface QuorumSettings {
  readonly maxTtl: number
  /** Milliseconds for which an empty store looks on. */
  readonly probation: number
  readonly timeoutFor: (ttl: number) => number
  readonly labels: readonly string[]
  readonly clock: QuorumClock
}

const MOST_NODES = 31
const MAX_TTL = { usual: 30_000, most: 86_400_000 }
/** Tokens begin at the server's clock in whole seconds: one that forgot its counter must not vote in the same second. */
const LEAST_PROBATION_MS = 1_000
const NODE_MS = { least: 50, ofTtl: 1 / 200, most: 10_000 }

export function checkNodes(stores: readonly Store[]): void {
  const given: unknown = stores
  if (!Array.isArray(given)) refuse('stores', 'stores must be an array of stores')
  if (stores.length < 2) {
    refuse('stores', 'a quorum needs several stores, best three or five. With one, use that store itself')
  }
  if (stores.length > MOST_NODES)
    refuse('stores', `a quorum of more than ${MOST_NODES} stores is none that helps`)
  const first = stores.findIndex((store, at) => stores.indexOf(store) !== at)
  if (first >= 0) {
    const twin = stores.indexOf(stores[first] as Store)
    refuse('stores', `stores ${twin + 1} and ${first + 1} are the same store: it would have two votes`)
  }
  const without = stores.findIndex(({ kind, votes }) => kind === 'redis' && votes === undefined)
  if (without >= 0) {
    refuse(
      'stores',
      `store ${without + 1} cannot be one of a quorum: give each Redis server by itself, through ioredis or redis, no Cluster, no Sentinel group, and without fencing: 'durable' and replicas, which votes do not heed`,
    )
  }
}

export function settingsOf(stores: readonly Store[], options: QuorumOptions): QuorumSettings {
  const { maxTtl = MAX_TTL.usual, setUp = 'wait', nodeTimeout, labels, clock = systemClock } = options
  checkMs('maxTtl', maxTtl, { min: 100, max: MAX_TTL.most })
  if (nodeTimeout !== undefined) checkMs('nodeTimeout', nodeTimeout, { min: 1, max: NODE_MS.most })
  if (setUp !== 'wait' && setUp !== 'now') refuse('setUp', "setUp must be 'wait' or 'now'")
  if (labels !== undefined && labels.length !== stores.length) {
    refuse('labels', 'labels must name every store, in the same order')
  }
  return {
    maxTtl,
    probation: probationOf(options),
    clock,
    labels: labels ?? stores.map(({ kind }, at) => `${kind} ${at + 1}`),
    // Far below the lease, also if that is short.
    timeoutFor: (ttl) => Math.min(nodeTimeout ?? Math.max(NODE_MS.least, ttl * NODE_MS.ofTtl), ttl / 2),
  }
}

/** Milliseconds for which an empty store looks on. */
export function probationOf({ maxTtl = MAX_TTL.usual, setUp }: QuorumOptions): number {
  return setUp === 'now' ? 0 : Math.max(maxTtl, LEAST_PROBATION_MS)
}

/** Milliseconds for which a vote is waited for at least, if the ttl is not very short. */
export function leastTimeoutOf({ nodeTimeout = NODE_MS.least }: QuorumOptions): number {
  return nodeTimeout
}

function refuse(argument: string, message: string): never {
  throw new InvalidArgumentError(message, { argument })
}
