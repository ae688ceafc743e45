import { setTimeout as sleep } from 'node:timers/promises'

import { checkLeftovers } from '../../testkit/checkers/leftovers.ts'
import { checkTokenOrder } from '../../testkit/checkers/token-order.ts'
import { checkExclusivity } from '../../testkit/checkers/exclusivity.ts'
import { holdsOf } from '../../testkit/holds.ts'
import type { RunRecord, Verdict, ViolationRecord } from '../record.ts'
import type { Expected } from './expected.ts'
import { expectedOfAll } from './expected.ts'
import type { Nemesis } from './nemeses.ts'
import { overlapsOf } from './overlaps.ts'
import { resourceViolations } from './resource-checks.ts'
import type { Stage } from './scene.ts'
import { Missed, Scene } from './scene.ts'
import { since } from './timeline.ts'

export interface CellOptions {
  readonly seed: number
  /** How often each fault strikes, one after the other. */
  readonly rounds?: number
  /** Instead: faults in an order that the seed chooses, until this many milliseconds are over. */
  readonly forMs?: number
  readonly signal?: AbortSignal
  readonly onFault?: (kind: string) => void
}

const CHECKS = [
  'exclusivity',
  'token order',
  'lost update',
  'fenced resource',
  'lost update, fenced',
  'liveness',
  'leftovers',
  'noise',
] as const

const CALM_MS = 300
const LIVENESS_SLACK_MS = 5000

/** One run: clients at work, faults on them, healing, and a look at everything that was written down. */
export async function runCell(
  stage: Stage,
  nemeses: readonly Nemesis[],
  options: CellOptions,
): Promise<RunRecord> {
  const missing = nemeses.map((one) => one.missing(stage)).find((why) => why !== undefined)
  const what = nemeses.map(({ kind }) => kind).join(', ')
  const about = {
    id: `live/${stage.store}/${what}`,
    title: `${stage.store}: ${nemeses.length === 1 ? nemeses[0]?.what : 'faults one after the other'}`,
    store: stage.store,
    fault: what,
    seed: options.seed,
  }
  if (missing !== undefined) {
    const verdicts: Verdict[] = [
      { check: 'exclusivity', expected: 'may break', seen: 'not run', why: missing },
    ]
    return { ...about, durationMs: 0, clients: [], faults: [], timeline: [], violations: [], verdicts }
  }
  const scene = await Scene.open(stage, options.seed)
  try {
    await act(scene, nemeses, options)
    const violations = await judgement(scene)
    const verdicts = CHECKS.map((check) =>
      verdictOf(check, expectedOfAll(check, nemeses, scene.capabilities), violations),
    )
    const { diary, clients } = scene
    return {
      ...about,
      durationMs: diary.now(),
      clients: clients.map(({ label }) => label),
      faults: diary.faults,
      timeline: diary.timeline(),
      violations,
      verdicts,
    }
  } finally {
    await scene.tidy().catch(() => undefined)
    await scene.close()
  }
}

async function act(scene: Scene, nemeses: readonly Nemesis[], options: CellOptions): Promise<void> {
  const { rounds = 1, forMs, signal, onFault = () => undefined } = options
  await scene.until(() => scene.working.every(({ grants }) => grants > 0), scene.expiry + LIVENESS_SLACK_MS)
  const strike = async (one: Nemesis): Promise<void> => {
    onFault(one.kind)
    await one.strike(scene)
    await sleep(CALM_MS)
  }
  const aimAgain = (error: unknown): void => {
    if (!(error instanceof Missed)) throw error
  }
  if (forMs === undefined) {
    for (let round = 0; round < rounds; round += 1) for (const one of nemeses) await strike(one)
    return
  }
  const end = performance.now() + forMs
  while (performance.now() < end && signal?.aborted !== true) {
    const one = nemeses[scene.random.below(nemeses.length)]
    // Among many, one that misses is made up for by the others; whether anybody starves is checked in the end.
    if (one !== undefined) await strike(one).catch(aimAgain)
  }
  const struck = scene.diary.faults.length > 0 || nemeses.every(({ kind }) => kind === 'none')
  if (!struck && signal?.aborted !== true) throw new Missed('no fault found anything to strike')
}

/** Heals everything, lets it come to rest, and asks the checkers. */
async function judgement(scene: Scene): Promise<ViolationRecord[]> {
  await scene.heal()
  const stuck = await stuckAfterHeal(scene)
  await scene.finish()
  const leftovers = await remains(scene)
  const { diary } = scene
  const logs = await scene.resource.logs()
  for (const { name, fenced } of logs) {
    for (const { kind, client, token, accepted, at } of fenced) {
      if (kind === 'read' && accepted) continue
      diary.note({ client, name, kind: accepted ? 'write' : 'write-refused', token: String(token) }, at)
    }
  }
  const holds = holdsOf(diary.history)
  const overlaps = checkExclusivity(holds).length === 0 ? [] : overlapsOf(holds)
  return [
    ...overlaps.map(({ name, clients, tokens, from, to }) => ({
      check: 'exclusivity',
      message: `${clients.join(' and ')} both believe that they hold "${name}" for ${Math.round(Number(to - from) / 1e6)} ms (tokens ${tokens.join(' and ')})`,
      at: since(diary.began, from),
      clients,
    })),
    ...checkTokenOrder(holds).map(({ message }) => ({ check: 'token order', message })),
    ...resourceViolations(logs, diary.began),
    ...stuck,
    ...leftovers,
    ...scene.noise.map((message) => ({ check: 'noise', message })),
  ]
}

/** Once nothing is in the way any more, everybody is given the lock again. */
async function stuckAfterHeal(scene: Scene): Promise<ViolationRecord[]> {
  const before = new Map(scene.working.map((client) => [client, client.grants]))
  const bound = scene.expiry + scene.stage.ttl + LIVENESS_SLACK_MS
  const waits = (): [(typeof scene.clients)[number], number][] =>
    [...before].filter(([client, grants]) => client.state === 'working' && client.grants <= grants)
  await scene.until(() => waits().length === 0, bound)
  return waits().map(([{ label }]) => ({
    check: 'liveness',
    message: `${label} was given nothing in the ${bound} ms after the last fault`,
    at: scene.diary.now(),
    clients: [label],
  }))
}

/** Nothing is held or waited for when all have gone home and the leases of the dead have run out. */
async function remains(scene: Scene): Promise<ViolationRecord[]> {
  const end = performance.now() + scene.expiry + LIVENESS_SLACK_MS
  for (;;) {
    const infos = await Promise.all(scene.stage.names.map((name) => scene.inspect(name)))
    const names = infos.filter((info) => info !== undefined)
    const found = checkLeftovers({ names })
    const unanswered = infos.length - names.length
    if (found.length + unanswered === 0) return []
    if (performance.now() > end) {
      const silent = unanswered === 0 ? [] : [{ check: 'leftovers', message: 'the store does not answer' }]
      return [...found.map(({ message }) => ({ check: 'leftovers', message })), ...silent]
    }
    await sleep(100)
  }
}

function verdictOf(check: string, expected: Expected, violations: readonly ViolationRecord[]): Verdict {
  const first = violations.find((violation) => violation.check === check)
  if (first === undefined) return { check, expected, seen: 'held' }
  return { check, expected, seen: 'broke', why: first.message }
}
