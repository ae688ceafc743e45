import { isNested } from '../context.ts'
import type { Call, Finding, Grant, Trace } from '../trace.ts'
import { KNOWN_MS } from './progress.ts'

/** What a process may do in one turn while others wait. */
const TURN_MS = 4

/** No reader who comes more than a turn after a writer queued is let in before it. */
export function bypass({ calls, grants, endedAt }: Trace): readonly Finding[] {
  return calls.flatMap((writer): Finding[] => {
    const [want] = writer.wants
    if (want === undefined || writer.wants.length > 1 || writer.wait === undefined) return []
    if (want.mode !== 'write' || isNested(writer, want)) return []
    const until = writer.to ?? endedAt
    const same = grants.filter(({ name }) => name === want.name)
    // Behind another writer of its process it stands in line there, and not yet at the store.
    const behind = same.some(
      (grant) =>
        grant.mode === 'write' &&
        grant.process === writer.process &&
        grant.from < until &&
        (grant.to ?? endedAt) >= writer.from,
    )
    if (behind) return []
    const after = writer.from + TURN_MS + KNOWN_MS
    const passed = same.find(
      (grant) => grant.from < until && isLate(grant, after) && !isInGroup(grant, calls, after),
    )
    return passed === undefined ? [] : [{ check: 'bypass', message: words(passed, writer, until) }]
  })
}

function isLate({ mode, inside, call }: Grant, after: number): boolean {
  return mode === 'read' && inside === undefined && call.from > after
}

/** Readers that stand in line together in one process have the place of the first, also if that one left. */
function isInGroup({ process, name, call }: Grant, calls: readonly Call[], after: number): boolean {
  return calls.some(
    (other) =>
      other.process === process &&
      other.from <= after &&
      (other.to ?? Infinity) >= call.from &&
      other.wants.some((want) => want.name === name && want.mode === 'read'),
  )
}

function words(passed: Grant, writer: Call, until: number): string {
  const reader = `p${passed.process} reads "${passed.name}" from ${passed.from}, asked at ${passed.call.from}`
  return `${reader}; p${writer.process} waited to write from ${writer.from} to ${until}`
}
