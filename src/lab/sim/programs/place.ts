import { HoldfastError } from '../../../core/errors.ts'
import type { Diary } from '../diary.ts'
import type { SimProcess, World } from '../world.ts'
import type { CallerSignal } from './caller-signal.ts'
import type { Holding } from './holding.ts'
import type { Grant, Trace } from './trace.ts'

/** Whom a task belongs to, and where it writes down what it sees. */
export interface Place {
  readonly index: number
  readonly process: SimProcess
  readonly world: World
  readonly trace: Trace
  /** Of a scenario: where its checks read. */
  readonly diary?: Diary
  /** Nothing goes wrong on the way to the store. */
  readonly calm: boolean
  /** The leases of the process that are not given back. */
  readonly open: Set<Holding>
  /** Of all of its calls that have none of their own. */
  readonly signal: CallerSignal
  /** One of them was given. */
  readonly given: (grant: Grant) => void
  /** Work that goes on by itself. */
  readonly beside: (work: Promise<void>) => void
}

const ANSWERED_MS = 25

/** Where nothing is in the way, one request and its answer are quick. */
export function answeredInTime({ world, calm, trace }: Place, what: string, from: number): void {
  const took = world.now() - from
  if (calm && from > 0 && took > ANSWERED_MS)
    trace.found('settles', `${what} took ${took} ms in a calm world`)
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof HoldfastError ? error.code : undefined
}
