import { KNOWN_MS } from '../bounds.ts'
import type { Closed, Finding, Trace } from '../trace.ts'

/** How long owners have to finish, where nothing else was said. */
export const DRAIN_MS = 10_000

/** Who closes waits for those that hold something, for as long as they do, and for nobody else: where nothing is in the way. */
export function closes(trace: Trace): readonly Finding[] {
  return trace.closes.flatMap((closed): Finding[] => {
    const { process, from, to = trace.endedAt } = closed
    const until = Math.min(drainOf(closed), lastHeld(closed, trace))
    if (to <= until + 2 * KNOWN_MS) return []
    const message = `close() of p${process} at ${from} ended at ${to}, and nobody held anything after ${until}`
    return [{ check: 'close', message }]
  })
}

/** When the drain is over. */
function drainOf({ from, options }: Closed): number {
  return options.release === false ? from : from + (options.drain ?? DRAIN_MS)
}

/** Until when somebody of the process had something. What is nested in a lease may have come after the call, and keeps its claim. */
function lastHeld({ process, from }: Closed, { grants, endedAt }: Trace): number {
  const own = grants.filter((grant) => grant.process === process)
  return Math.max(from, ...own.map(({ to }) => to ?? endedAt))
}
