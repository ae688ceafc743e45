import type { LockTimeoutError } from '../../../../core/errors.ts'
import type { LeaseSet } from '../../../../locks/lock-set.ts'
import type { Lease } from '../../../../runtime/lease.ts'
import type { Place } from '../place.ts'
import type { Call, Trace } from '../trace.ts'

/** What leases and errors say of themselves is true. */

/** By how much what a caller measures may differ from what it is told. */
const WAITED_MS = 2

/** What a set says of itself is true of all that are in it. Asked in this order: what is left gets less, whatever stands still. */
export function together(trace: Trace, set: Lease | LeaseSet): void {
  if (!('leases' in set)) return
  const { leases } = set
  const wrong = (what: string): void => trace.found('set', `a set of "${set.name}" ${what}`)
  const names = leases.map(({ name }) => name)
  if (names.join() !== [...new Set(names)].sort().join()) wrong('was not taken in the order of the names')
  const tokens = leases.map(({ token }) => token)
  if (tokens.some((token) => token > set.token) || !tokens.includes(set.token))
    wrong('does not have the largest of its tokens')
  const least = Math.min(...leases.map((lease) => lease.remaining()))
  if (set.remaining() > least) wrong('says that it is good for longer than a part of it')
  const over = leases.some(({ held }) => !held)
  if (over && set.held) wrong('says that it is held, and a part of it is not')
  if (leases.some(({ signal }) => signal.aborted) && !set.signal.aborted)
    wrong('did not tell that a part of it is lost')
}

/** The error says for how long its caller waited, by clocks that are right in a program's own world. */
export function waited(
  { trace, diary }: Place,
  { wait, wants, from, to = from }: Call,
  error: LockTimeoutError,
): void {
  if (wait === undefined || wants.length > 1 || diary !== undefined) return
  if (Math.abs(error.waited - (to - from)) > WAITED_MS)
    trace.found('errors', `a wait of ${to - from} ms is said to have been one of ${error.waited}`)
}
