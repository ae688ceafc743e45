import { setTimeout as sleep } from 'node:timers/promises'

import type { RunRecord, Verdict } from '../record.ts'
import type { Expected } from './expected.ts'
import { expectedOfAll } from './expected.ts'
import { judgement } from './judgement.ts'
import type { Judgement } from './judgement.ts'
import type { Nemesis } from './nemeses.ts'
import { QueueWatch } from './queue-watch.ts'
import type { Stage } from './scene.ts'
import { Missed, Scene } from './scene.ts'

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
  'linearizability',
  'lost update',
  'fenced resource',
  'lost update, fenced',
  'liveness',
  'leftovers',
  'noise',
] as const

const CALM_MS = 300
const START_SLACK_MS = 5000

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
    // Under faults the order in which clients came is nobody's promise.
    const fair = scene.capabilities.queue && nemeses.every(({ kind }) => kind === 'none')
    const queue = fair ? new QueueWatch(scene) : undefined
    await act(scene, nemeses, options)
    await queue?.stop()
    const found = await judgement(scene)
    const { violations } = found
    const verdicts = [...CHECKS, ...(fair ? ['fifo'] : [])].map((check) =>
      verdictOf(check, expectedOfAll(check, nemeses, scene.capabilities), found),
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
  await scene.until(() => scene.working.every(({ grants }) => grants > 0), scene.expiry + START_SLACK_MS)
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

function verdictOf(check: string, expected: Expected, { violations, undecided }: Judgement): Verdict {
  const first = violations.find((violation) => violation.check === check)
  if (first !== undefined) return { check, expected, seen: 'broke', why: first.message }
  const why = undecided.get(check)
  return why === undefined ? { check, expected, seen: 'held' } : { check, expected, seen: 'unknown', why }
}
