import { holdsOf } from '../../testkit/holds.ts'
import type { Hold } from '../../testkit/holds.ts'
import type { RunRecord, Verdict, ViolationRecord } from '../record.ts'
import { beliefsOf, closingsOf, endsOf, errorsOf, unreleasedOf } from './checks/clients.ts'
import { overdueOf } from './checks/expiry.ts'
import { progressOf } from './checks/progress.ts'
import type { Progress } from './checks/progress.ts'
import { refusalsOf, unservedOf } from './checks/refusals.ts'
import { resourceOf } from './checks/resource.ts'
import { safetyOf } from './checks/safety.ts'
import { stillWritersOf, unseenOf } from './checks/shown.ts'
import type { Evidence } from './evidence.ts'
import { expectedOfAll } from './expected.ts'
import { busyOf, excused, slowInTheEnd, struckBy, troubled, windowsOf } from './windows.ts'

/** Without a grant these have nothing to look at. */
const OF_GRANTS: ReadonlySet<string> = new Set([
  'exclusivity',
  'token order',
  'linearizability',
  'lost update',
  'fenced resource',
  'lost update, fenced',
  'belief',
])

/** Without a write these have nothing to look at. */
const OF_WRITES: readonly string[] = ['lost update', 'fenced resource', 'lost update, fenced']

/** What only tokens can be asked. */
const OF_TOKENS: ReadonlySet<string> = new Set(['token order', 'fenced resource', 'lost update, fenced'])

const CHECKS = [
  ...OF_GRANTS,
  'renewal',
  'liveness',
  'wake-ups',
  'throughput',
  'refusals',
  'inspection',
  'leftovers',
  'clients',
  'errors',
  'closing',
  'noise',
  'faults',
]

/** Where one of several servers is not waited for longer than this, a call may fail for want of a processor. */
const SHORT_MS = 40

export type Judgement = Pick<RunRecord, 'violations' | 'verdicts'>

/** What follows from the evidence. Pure: the same evidence gives the same verdicts, anywhere and at any time. */
export function judgeEvidence(evidence: Evidence): Judgement {
  const { settings, history, noise, remains } = evidence
  const windows = windowsOf(evidence)
  const holds = holdsOf(history)
  const safety = safetyOf(evidence, holds)
  const progress = progressOf(evidence, holds, windows)
  const busy = [...windows, ...busyOf(evidence)]
  // Those of them that cannot be laid to a machine that was too busy.
  const firm = [
    ...progressOf(evidence, holds, busy).violations,
    ...overdueOf(evidence, holds, busy),
    ...errorsOf(evidence, [...windows, ...busyOf(evidence, SHORT_MS)]),
    ...refusalsOf(evidence, busy),
    ...unservedOf(evidence, busy),
    ...unreleasedOf(evidence, busy),
    ...safety.order.filter(({ at = 0 }) => !troubled(busy, at - 2 * settings.ttl, at)),
  ]
  const slow = slowInTheEnd(evidence)
  const stuck = evidence.stuck.filter(({ check }) => !slow || check !== 'liveness')
  const undecided = new Map(safety.undecided)
  const duties = dutiesOf(evidence, holds, progress)
  for (const { check, message } of [...duties, ...safety.order, ...evidence.stuck]) {
    if ([...firm, ...stuck].some((one) => one.check === check) || undecided.has(check)) continue
    undecided.set(check, `the machine or the store was too slow to say: ${message}`)
  }
  const barren = holds.length === 0
  const violations: ViolationRecord[] = [
    ...safety.violations,
    ...resourceOf(evidence, holds),
    ...firm,
    ...beliefsOf(evidence),
    ...endsOf(evidence),
    ...closingsOf(evidence),
    ...unseenOf(evidence, holds, windows),
    ...stillWritersOf(evidence, holds, windows),
    ...stuck,
    ...(barren ? [{ check: 'liveness', message: 'nobody was ever given a lock' }] : []),
    ...remains.map((message) => ({ check: 'leftovers', message })),
    ...noise.map((message) => ({ check: 'noise', message })),
  ]
  const idle = new Map(progress.idle)
  const { refusals = [], looks, registers } = evidence
  if (!registers.some(({ unfenced }) => unfenced.some(({ kind }) => kind === 'write')))
    for (const check of OF_WRITES) idle.set(check, 'nobody ever wrote')
  if (refusals.length === 0) idle.set('refusals', 'no try was refused')
  if (!looks.some(({ holders }) => holders.length > 0))
    idle.set('inspection', 'the store was never seen to show a holder')
  const struck = struckBy(evidence)
  // Under faults the order in which clients came is nobody's promise.
  const calm = settings.nemeses.every(({ kind }) => kind === 'none')
  const tokens = settings.tokens !== false
  const checks = CHECKS.filter((check) => tokens || !OF_TOKENS.has(check))
  // Who stands in line is seen at our own stores alone.
  if (calm && tokens && settings.capabilities.queue) checks.push('fifo')
  const verdicts = checks.map((check): Verdict => {
    if (check === 'faults') return faultsVerdict(evidence)
    const own = violations.filter((one) => one.check === check)
    const expected = expectedOfAll(check, struck, settings.capabilities)
    const outside = own.find((one) => !excused(one, windows, settings) && !follows(one, violations))
    if (outside !== undefined) {
      const where = windows.length === 0 || expected === 'holds' ? '' : 'Outside of every fault: '
      return { check, expected: 'holds', seen: 'broke', why: `${where}${outside.message}` }
    }
    const [first] = own
    if (first !== undefined) return { check, expected, seen: 'broke', why: first.message }
    // What may have been broken is no check that had nothing to look at: where no lease is renewed, none outlives its ttl.
    const why = undecided.get(check)
    if (why !== undefined) return { check, expected, seen: 'unknown', why }
    const unseen = barren && OF_GRANTS.has(check) ? 'nobody was ever given a lock' : idle.get(check)
    return unseen === undefined
      ? { check, expected, seen: 'held' }
      : { check, expected, seen: 'not run', why: unseen }
  })
  // What is only checked where nothing happens is not violated elsewhere.
  return { verdicts, violations: violations.filter(({ check }) => checks.includes(check)) }

  /** A search for an order says only where it got stuck, which may be after the overlap that is the reason. */
  function follows({ check }: ViolationRecord, all: readonly ViolationRecord[]): boolean {
    return (
      check === 'linearizability' &&
      all.some((one) => /exclusivity|token order/.test(one.check) && excused(one, windows, settings))
    )
  }
}

/** What was not done in time, or not as asked, however busy the machine was: what is undecided is among it. */
export function dutiesOf(
  evidence: Evidence,
  holds: readonly Hold[] = holdsOf(evidence.history),
  progress: Progress = progressOf(evidence, holds, windowsOf(evidence)),
): readonly ViolationRecord[] {
  const windows = windowsOf(evidence)
  return [
    ...progress.violations,
    ...overdueOf(evidence, holds, windows),
    ...errorsOf(evidence, windows),
    ...refusalsOf(evidence, windows),
    ...unservedOf(evidence, windows),
    ...unreleasedOf(evidence, windows),
  ]
}

/** A run whose faults did not come about has proven less than its title says. */
function faultsVerdict(evidence: Evidence): Verdict {
  const { settings, missed, faults } = evidence
  const struck = struckBy(evidence)
  const absent = settings.nemeses.filter((one) => !struck.includes(one))
  const verdict = { check: 'faults', expected: 'holds' } as const
  if (absent.length === 0) return { ...verdict, seen: 'held' }
  const why = absent
    .map(({ kind }) => {
      const short = faults.findLast((fault) => fault.kind === kind)
      const length = Math.round((short?.until ?? short?.at ?? 0) - (short?.at ?? 0))
      const reason =
        missed.findLast((one) => one.kind === kind)?.why ??
        (short === undefined ? 'it was not its turn' : `it lasted ${length} of ${short.least} ms`)
      return `${kind}: ${reason}`
    })
    .join('; ')
  const nothing = struck.every(({ kind }) => kind === 'none')
  return { ...verdict, seen: nothing ? 'unknown' : 'not run', why }
}
