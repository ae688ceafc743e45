import { checkExclusivity } from '../../testkit/checkers/exclusivity.ts'
import { checkFencedResource, checkHolderAdmitted } from '../../testkit/checkers/fenced-resource.ts'
import { checkLostUpdates } from '../../testkit/checkers/lost-update.ts'
import type { Update } from '../../testkit/checkers/lost-update.ts'
import { checkTokenOrder } from '../../testkit/checkers/token-order.ts'
import { holdsOf } from '../../testkit/holds.ts'
import { overlapsOf } from '../live/overlaps.ts'
import { since } from '../live/timeline.ts'
import type { RunRecord, Verdict, ViolationRecord } from '../record.ts'
import type { Decision } from '../resource/register.ts'
import { Play } from './play.ts'
import type { Servers, Specimen } from './specimen.ts'

export type Cast = 'flawed' | 'ours'

/** One specimen through its scenario, or holdfast through the same. */
export async function runSpecimen(specimen: Specimen, cast: Cast, servers: Servers): Promise<RunRecord> {
  const { id, title, fault, needs } = specimen
  const about = {
    id: `specimen/${id}/${cast}`,
    title: cast === 'flawed' ? `${title}: ${specimen.flaw}` : `${title}: the same on holdfast`,
    store: cast === 'flawed' ? `specimen: ${title}` : `holdfast: ${title}`,
    fault,
  }
  const play = new Play(servers)
  const act = cast === 'flawed' ? specimen.flawed.bind(specimen) : specimen.ours?.run.bind(specimen.ours)
  if (act === undefined || servers[needs] === undefined) {
    const why = act === undefined ? 'another specimen shows it' : `there is no ${needs} on this machine`
    const verdict: Verdict = {
      check: specimen.caughtBy ?? 'liveness',
      expected: 'holds',
      seen: 'not run',
      why,
    }
    return {
      ...about,
      durationMs: 0,
      clients: [],
      faults: [],
      timeline: [],
      violations: [],
      verdicts: [verdict],
    }
  }
  try {
    await act(play)
    const violations = [...historyViolations(play, cast), ...play.violations]
    const verdicts = checksOf(play, cast).map((check) => {
      const verdict = verdictOf(check, expectation(specimen, cast, check), violations)
      const measure = play.measures.get(check)
      return measure === undefined || verdict.why !== undefined ? verdict : { ...verdict, why: measure }
    })
    return {
      ...about,
      durationMs: play.diary.now(),
      clients: play.actors.map(({ label }) => label),
      faults: play.diary.faults,
      timeline: play.diary.timeline(),
      violations,
      verdicts,
    }
  } finally {
    await play.end()
  }
}

const checksOf = ({ checked }: Play, cast: Cast): string[] => [
  'exclusivity',
  ...(cast === 'ours' ? ['token order'] : []),
  ...checked,
]

function expectation({ caughtBy, ours }: Specimen, cast: Cast, check: string): Verdict['expected'] {
  const broken = cast === 'flawed' ? caughtBy === check : (ours?.breaks ?? []).includes(check)
  return broken ? 'breaks' : 'holds'
}

function verdictOf(
  check: string,
  expected: Verdict['expected'],
  violations: readonly ViolationRecord[],
): Verdict {
  const first = violations.find((violation) => violation.check === check)
  return first === undefined
    ? { check, expected, seen: 'held' }
    : { check, expected, seen: 'broke', why: first.message }
}

function historyViolations({ diary, resources, name }: Play, cast: Cast): ViolationRecord[] {
  const holds = holdsOf(diary.history)
  const overlaps = checkExclusivity(holds).length === 0 ? [] : overlapsOf(holds)
  const tokens = cast === 'ours' ? checkTokenOrder(holds) : []
  const requests = resources.fenced.log.map(({ client, token, accepted, at }) => ({
    name,
    client,
    token,
    accepted,
    at,
  }))
  return [
    ...overlaps.map(({ clients, from }) => ({
      check: 'exclusivity',
      message: `${clients.join(' and ')} both believe that they hold the lock`,
      at: since(diary.began, from),
      clients,
    })),
    ...tokens.map(({ message }) => ({ check: 'token order', message })),
    ...checkLostUpdates(updatesOf(resources.unfenced.log), resources.unfenced.value).map(({ message }) => ({
      check: 'lost update',
      message,
    })),
    ...[...checkFencedResource(requests), ...checkHolderAdmitted(holds, requests)].map(({ message }) => ({
      check: 'fenced resource',
      message,
    })),
  ]
}

/** What a register was asked to store, and stored. */
function updatesOf(log: readonly Decision[]): Update[] {
  return log
    .filter(({ kind, accepted }) => kind === 'write' && accepted)
    .map(({ read, wrote }) => ({ read, wrote, outcome: 'stored' }))
}
