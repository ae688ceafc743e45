import type { Guarantees } from '../../core/contract.ts'
import type { Scene, Stage } from './scene.ts'

/** What a judge has to know of a way to hurt a run. */
export interface NemesisFacts {
  readonly kind: string
  readonly what: string
  /** The row of the table of guarantees that says what holds. Absent: everything does. */
  readonly row?: keyof Guarantees
  /** Aimed so well that what cannot hold is seen to break, and by which check. */
  readonly aimedAt?: 'exclusivity' | 'lost update'
}

/** One way to hurt a run. */
export interface Nemesis extends NemesisFacts {
  /** A ttl that leaves room for what has to happen while somebody still believes. */
  readonly ttl?: number
  /** Why it cannot be done on this stage; undefined if it can. */
  missing(stage: Stage): string | undefined
  strike(scene: Scene): Promise<void>
}

export function factsOf({ kind, what, row, aimedAt }: NemesisFacts): NemesisFacts {
  return { kind, what, ...(row !== undefined && { row }), ...(aimedAt !== undefined && { aimedAt }) }
}
