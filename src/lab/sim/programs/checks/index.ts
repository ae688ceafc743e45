import { isCalm, isCalmButForThat } from '../program.ts'
import type { Program } from '../program.ts'
import type { Finding, Trace } from '../trace.ts'
import { exclusivity, tokens } from './safety.ts'
import { bypass } from './bypass.ts'
import { closes } from './closes.ts'
import { progress, refusals } from './progress.ts'
import { promises } from './promises.ts'
import { taken } from './taken.ts'

/** Whoever is told nothing asks this often at least, and a few messages more. */
const ASKED_MS = 1100

/** Everything that must be true of a program that ran, whatever it was. */
export function examine(program: Program, trace: Trace): readonly Finding[] {
  const calm = isCalm(program)
  return [
    ...exclusivity(trace),
    ...tokens(trace),
    // Where messages get lost, a waiter may have to find out by itself, and a ghost may be in the way for a while.
    ...(calm && !isMixedUp(trace) ? examineCalm(trace) : []),
    ...(program.deaf === true && isCalmButForThat(program) && !isMixedUp(trace)
      ? progress(trace, ASKED_MS)
      : []),
    ...(calm ? closes(trace) : []),
    ...promises(trace, calm, program.broken !== undefined, program.mute === true),
  ]
}

/** Some think that a name has another capacity than others do: whether there is room for all of them nobody can say. */
function isMixedUp({ calls }: Trace): boolean {
  const capacities = new Map<string, number>()
  return calls.some(({ wants }) =>
    wants.some(({ name, capacity }) => {
      const known = capacities.get(name)
      capacities.set(name, capacity)
      return known !== undefined && known !== capacity
    }),
  )
}

/** What can be measured where nothing is in the way. */
export function examineCalm(trace: Trace): readonly Finding[] {
  return [...progress(trace), ...refusals(trace), ...bypass(trace), ...taken(trace)]
}
