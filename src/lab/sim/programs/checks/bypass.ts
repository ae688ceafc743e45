import { isNested } from '../context.ts'
import type { Call, Finding, Grant, Trace } from '../trace.ts'
import { KNOWN_MS } from '../bounds.ts'

/** What a process may do in one turn while others wait. */
const TURN_MS = 4

/** No reader who comes more than a turn after a writer has its place at the store is let in before it. */
export function bypass(trace: Trace): readonly Finding[] {
  const { calls, grants, endedAt } = trace
  return calls.flatMap((writer): Finding[] => {
    const [want] = writer.wants
    if (want === undefined || trace.wasForced(want.name)) return []
    if (writer.wants.length > 1 || writer.wait === undefined) return []
    if (want.mode !== 'write' || isNested(writer, want)) return []
    const until = writer.to ?? endedAt
    const after = standsSince(writer, want.name, trace) + TURN_MS + KNOWN_MS
    const readers = grants.filter(
      ({ name, mode, inside }) => name === want.name && mode === 'read' && inside === undefined,
    )
    const inTime = readers.filter((grant) => placeOf(grant, calls) <= after)
    // A writer's turn is the readers' too, once it was downgraded.
    const downgraded = grants.filter(
      ({ name, readsFrom, call }) => name === want.name && readsFrom !== undefined && call.from <= after,
    )
    const turns = [...inTime, ...downgraded]
    const passed = readers.find(
      (grant) => grant.from < until && !inTime.includes(grant) && !isInTurn(grant, turns),
    )
    return passed === undefined ? [] : [{ check: 'bypass', message: words(passed, writer, until) }]
  })
}

/**
 * Since when a writer has a place at the store at the latest. Behind another writer of its process it stands in line there. When that one is
 * done and the turn is over, the process queues again: behind whoever came meanwhile, see docs/adr/0001.
 */
function standsSince(writer: Call, name: string, { calls, grants, endedAt }: Trace): number {
  const until = writer.to ?? endedAt
  const before = grants
    .filter((grant) => grant.name === name && grant.process === writer.process && isWriters(grant))
    .map(({ from, readsFrom, to = endedAt }) => ({ from, to: readsFrom ?? to }))
  // What takes several locks and does not get all of them may have had this one meanwhile. Nobody saw it.
  const inVain = calls
    .filter(({ process, wants, end }) => process === writer.process && wants.length > 1 && end !== 'granted')
    .filter(({ wants }) => wants.some((want) => want.name === name && want.mode === 'write'))
    .map(({ from, to = endedAt }) => ({ from, to }))
  const ends = [...before, ...inVain].filter(({ from, to }) => from < until && to > writer.from)
  return Math.max(writer.from, ...ends.map(({ to }) => to))
}

/** A lease nested in a writer's keeps the writer's claim, whatever it is for. */
function isWriters({ mode, inside }: Grant): boolean {
  return inside === undefined ? mode === 'write' : isWriters(inside)
}

/** Since when its process stood in line: who joins a line of readers has the place of the first, also if that one left. */
function placeOf({ process, name, call }: Grant, calls: readonly Call[]): number {
  const line = calls.filter(
    (each) =>
      each.process === process && each.wants.some((want) => want.name === name && want.mode === 'read'),
  )
  let since = call.from
  for (let longer = true; longer;) {
    const earlier = line.find(({ from, to = Infinity }) => from < since && to >= since)
    longer = earlier !== undefined
    since = earlier?.from ?? since
  }
  return since
}

/** A process that got its turn may let new ones in for as long as it lasts. */
function isInTurn({ process, from }: Grant, turns: readonly Grant[]): boolean {
  return turns.some(
    (first) => first.process === process && first.from <= from && from <= first.from + TURN_MS,
  )
}

function words(passed: Grant, writer: Call, until: number): string {
  const reader = `p${passed.process} reads "${passed.name}" from ${passed.from}, asked at ${passed.call.from}`
  return `${reader}; p${writer.process} waited to write from ${writer.from} to ${until}`
}
