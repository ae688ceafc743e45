import { judge } from '../record.ts'
import type { Counts, RunRecord, TimelineEvent, Verdict } from '../record.ts'
import type { Evidence } from './evidence.ts'
import { revive } from './evidence.ts'
import type { Judgement } from './judgement.ts'
import { judgeEvidence } from './judgement.ts'
import { since, timelineOf } from './timeline.ts'

type About = Pick<RunRecord, 'id' | 'title' | 'store' | 'fault' | 'seed'>

/** Evidence and judgement as everything else that the lab leaves behind. */
export function recordOf(
  { command, ...about }: About & { readonly command?: string | undefined },
  evidence: Evidence,
  judgement: Judgement,
): RunRecord {
  return {
    ...about,
    durationMs: evidence.endedAt,
    clients: evidence.clients.map(({ label }) => label),
    faults: evidence.faults,
    timeline: pictured(evidence),
    ...judgement,
    counts: countsOf(evidence, command),
    evidence,
  }
}

/**
 * A record that was written down, judged again by the rules of today. All that is told of the run follows from its evidence, too. Without
 * evidence nothing in it is believed that would be a success.
 */
export function judgeAgain(record: RunRecord): RunRecord {
  if (record.evidence === undefined) return { ...record, verdicts: record.verdicts.map(unproven) }
  const evidence = revive(record.evidence)
  const names = new Set(evidence.settings.names.map(({ name }) => name))
  // It would not be looked at.
  const stray = evidence.history.find(({ name }) => !names.has(name))
  if (stray !== undefined) throw new Error(`a call on "${stray.name}", which is none of its locks`)
  const { counts, ...about } = record
  return recordOf({ ...about, command: counts?.command }, evidence, judgeEvidence(evidence))
}

function unproven(verdict: Verdict): Verdict {
  const success = verdict.seen !== 'not run' && judge(verdict) === 'as expected'
  return success ? { ...verdict, seen: 'not run', why: 'no evidence of it was written down' } : verdict
}

function countsOf({ history, clients, settings }: Evidence, command: string | undefined): Counts {
  const first = Math.min(...clients.map(({ startedAt }) => startedAt))
  const killed = clients.filter(({ exit, closing }) => exit?.planned === true && closing === undefined)
  return {
    grants: history.filter(({ kind, phase }) => kind === 'acquire' && phase === 'ok').length,
    respawns: clients.filter(({ startedAt }) => killed.some(({ exit }) => startedAt >= (exit?.at ?? first)))
      .length,
    ttl: settings.ttl,
    ...(command !== undefined && { command }),
  }
}

function pictured({ history, registers, notes, began }: Evidence): TimelineEvent[] {
  const writes = registers.flatMap(({ name, fenced }) =>
    fenced.flatMap(({ kind, client, token, accepted, at }): TimelineEvent[] => {
      if (kind === 'read' && accepted) return []
      const what = accepted ? 'write' : 'write-refused'
      return [{ at: since(began, at), client, name, kind: what, token: String(token) }]
    }),
  )
  return [...timelineOf(history, began), ...notes, ...writes].sort((a, b) => a.at - b.at)
}
