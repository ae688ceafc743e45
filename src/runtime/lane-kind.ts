import { ALL } from '../core/contract.ts'

export interface LaneSpec {
  readonly weight: number
  readonly capacity: number
  readonly ttl: number
  /** `false`: a lease ends after its ttl, whatever happens. */
  readonly renew: boolean
  /** `strict`: give way as soon as another process is known to wait. `turns`: after the turn's budget. */
  readonly fair: 'turns' | 'strict'
}

/** What a lane is made for: its spec, and what follows from it. One object for all lanes that are alike. */
export interface LaneKind extends LaneSpec {
  /** Readers, who never refuse each other. */
  readonly reads: boolean
  /** Readers: one claim serves many of them at once. */
  readonly shared: boolean
  /** How many claims can be held at once. */
  readonly most: number
}

export function laneKind({ weight, capacity, ttl, renew, fair }: LaneSpec): LaneKind {
  // A lease that is not renewed cannot be handed on, so its readers claim one by one.
  const reads = capacity === ALL && weight < ALL
  const shared = reads && renew
  return { weight, capacity, ttl, renew, fair, reads, shared, most: Math.floor(capacity / weight) }
}

export function sameSpec(a: LaneSpec, b: LaneSpec): boolean {
  return (
    a.weight === b.weight &&
    a.capacity === b.capacity &&
    a.ttl === b.ttl &&
    a.renew === b.renew &&
    a.fair === b.fair
  )
}
