/**
 * What is done to a simulated world, as data: a list can be made from a seed, written down, shortened and run again.
 * Times are milliseconds of true time since the run began. `process` and `node` are numbers from 0.
 */
export type Fault =
  /** Requests and replies of a process take longer. */
  | {
      readonly kind: 'delay'
      readonly at: number
      readonly until: number
      readonly process: number
      readonly request: number
      readonly reply: number
      readonly event: number
    }
  /** The next messages of a kind are lost. `request`: the store never sees it. `reply`: it does, and nobody hears. */
  | {
      readonly kind: 'loss'
      readonly at: number
      readonly process: number
      readonly what: 'request' | 'reply' | 'event'
      readonly method: string
      readonly times: number
    }
  /** The next request of a kind arrives a second time, `later` after the first. */
  | {
      readonly kind: 'duplicate'
      readonly at: number
      readonly process: number
      readonly method: string
      readonly later: number
    }
  /** The next message that nobody asked for arrives a second time, `later` after the first. */
  | { readonly kind: 'echo'; readonly at: number; readonly process: number; readonly later: number }
  /** Nothing passes between a process and a node, in either direction. */
  | {
      readonly kind: 'partition'
      readonly at: number
      readonly until: number
      readonly process: number
      readonly node: number
    }
  /** The process stands still; time does not. */
  | { readonly kind: 'pause'; readonly at: number; readonly until: number; readonly process: number }
  /** Its machine sleeps: as a pause, but the monotonic clock stands still too. */
  | { readonly kind: 'suspend'; readonly at: number; readonly until: number; readonly process: number }
  /** The `reads`-th reading of the clock from then on takes `ms`: time passes between two adjacent statements. */
  | {
      readonly kind: 'stall'
      readonly at: number
      readonly process: number
      readonly reads: number
      readonly ms: number
    }
  | { readonly kind: 'kill'; readonly at: number; readonly process: number }
  /** The node is away for a while. `lost`: without power, so that it comes back with what its durability kept. */
  | {
      readonly kind: 'restart'
      readonly at: number
      readonly until: number
      readonly node: number
      readonly memory: 'kept' | 'lost'
    }
  /** The replica becomes the primary, without what was written in the last `behind` milliseconds. */
  | {
      readonly kind: 'failover'
      readonly at: number
      readonly until: number
      readonly node: number
      readonly behind: number
    }
  /**
   * A planned failover: nothing is lost, and commands go to the new primary. Whoever listens stays at the old one, its replica now,
   * for `stays` milliseconds, and hears what the primary publishes when it was replicated.
   */
  | {
      readonly kind: 'hand-over'
      readonly at: number
      readonly until: number
      readonly node: number
      readonly stays: number
    }
  /** Somebody sets a process's wall clock. */
  | { readonly kind: 'clock-jump'; readonly at: number; readonly process: number; readonly by: number }
  /** Somebody sets a node's wall clock. */
  | { readonly kind: 'node-clock-jump'; readonly at: number; readonly node: number; readonly by: number }
  /** From the beginning on, a clock runs at another rate. */
  | { readonly kind: 'clock-rate'; readonly at: 0; readonly process: number; readonly rate: number }
  | { readonly kind: 'node-clock-rate'; readonly at: 0; readonly node: number; readonly rate: number }
  /** The node throws the item of a name away to make room. */
  | { readonly kind: 'evict'; readonly at: number; readonly node: number; readonly name: string }

export type FaultKind = Fault['kind']
export type FaultOf<K extends FaultKind> = Extract<Fault, { readonly kind: K }>
