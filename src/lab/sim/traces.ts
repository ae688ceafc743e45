import type { NameInfo } from '../../core/contract.ts'
import type { Fault } from './fault.ts'
import type { NameKind } from './names.ts'
import type { Trace } from './programs/trace.ts'
import type { Resource } from './resource.ts'
import type { Backend } from './stores/backend.ts'
import type { Scenario } from './types.ts'
import type { SimProcess, World } from './world.ts'

/** What is left of a run when it is over, for the checks. */
export interface Traces {
  readonly scenario: Scenario
  readonly world: World
  readonly backend: Backend
  readonly names: readonly NameKind[]
  readonly resource: Resource
  readonly plan: readonly Fault[]
  readonly alive: readonly SimProcess[]
  readonly crashes: readonly unknown[]
  readonly fair: 'turns' | 'strict'
  /** What the tasks of the random program asked for, and were given. */
  readonly calls: Trace
  /** What the store had at the moment when the last task was done and everything was cleaned up. */
  readonly remains: readonly NameInfo[]
  readonly healedAt: number
  readonly endedAt: number
  /** Requests that were sent when nobody wanted anything any more. */
  readonly stray: number
}
