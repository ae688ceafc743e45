import { setTimeout as sleep } from 'node:timers/promises'

import { checkLeftovers } from '../../testkit/checkers/leftovers.ts'
import type { RunRecord, Verdict } from '../record.ts'
import type { LiveClient } from './client.ts'
import type { Evidence } from './evidence.ts'
import { judgeEvidence } from './judgement.ts'
import type { Nemesis } from './nemesis.ts'
import type { Stage } from './scene.ts'
import { Missed, Scene } from './scene.ts'
import { recordOf } from './telling.ts'
import { lasted, troubleAfter } from './windows.ts'

export interface CellOptions {
  readonly seed: number
  /** How often each fault strikes, one after the other. */
  readonly rounds?: number
  /** Instead: faults in an order that the seed chooses, until this many milliseconds are over. */
  readonly forMs?: number
  readonly signal?: AbortSignal
  /** How to make the same run again, for the report. */
  readonly command?: string
  readonly onFault?: (kind: string) => void
}

const CALM_MS = 300
/** Before the first fault: enough to see whether locks move on. */
const FIRST_GRANTS = 60
const CALM_GRANTS = 25
const CALM_AT_MOST_MS = 10_000
const RENEWED_TTLS = 2.5
const START_SLACK_MS = 5000
const LIVENESS_SLACK_MS = 5000
/** A fault that missed, or was over too soon, is made again so many times. */
const ATTEMPTS = 3
/** After so many faults there is a time without any: what a fault left broken shows when it is over. */
const CALM_EVERY = 4

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
  const evidence = await observe(stage, nemeses, options)
  return recordOf({ ...about, command: options.command }, evidence, judgeEvidence(evidence))
}

/** Makes the run, and writes down what is seen of it. */
async function observe(stage: Stage, nemeses: readonly Nemesis[], options: CellOptions): Promise<Evidence> {
  const scene = await Scene.open(stage, options.seed)
  try {
    await act(scene, nemeses, options)
    await scene.heal()
    await afterwards(scene, () => options.signal?.aborted === true || scene.working.length === 0)
    await stuckAfterHeal(scene)
    await scene.finish()
    const remains = await remainsOf(scene)
    await scene.onlooker.stop()
    return await scene.evidence(nemeses, remains)
  } finally {
    await scene.tidy().catch(() => undefined)
    await scene.close()
  }
}

async function act(scene: Scene, nemeses: readonly Nemesis[], options: CellOptions): Promise<void> {
  const { rounds = 1, forMs, signal, onFault = () => undefined } = options
  const given = (): boolean => scene.working.every(({ grants }) => grants > 0)
  await scene.until(given, scene.expiry + START_SLACK_MS)
  // Without anybody who holds a lock there is nothing to hurt; the judge will say so.
  if (!scene.working.some(({ grants }) => grants > 0)) return
  let until = Infinity
  const over = (): boolean =>
    performance.now() >= until || signal?.aborted === true || scene.working.length === 0
  // What holds without any fault has to be seen first.
  await scene.meetings()
  await calm(scene, scene.kinds, over, FIRST_GRANTS)
  until = performance.now() + (forMs ?? Infinity)
  const strike = async (one: Nemesis): Promise<void> => {
    onFault(one.kind)
    await strikeOnce(scene, one)
    await sleep(CALM_MS)
  }
  if (forMs === undefined) {
    for (let round = 0; round < rounds; round += 1) {
      for (const one of nemeses) if (!over()) await strike(one)
    }
    return
  }
  // Each of them once, in any order, and then as chance has it: a short run is to leave out as few as it can.
  const first = nemeses
    .map((one) => ({ one, at: scene.random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one)
  for (let count = 1; !over(); count += 1) {
    const one = first[count - 1] ?? nemeses[scene.random.below(nemeses.length)]
    if (one !== undefined) await strike(one)
    if (count % CALM_EVERY === 0) await afterwards(scene, over)
  }
}

/** A section of each of these kinds that outlives its ttl, and some hand-overs, while nothing is in the way. */
async function calm(
  scene: Scene,
  kinds: Scene['kinds'],
  over: () => boolean,
  least: number = CALM_GRANTS,
): Promise<void> {
  const first = scene.diary.faults.length === 0
  // The first of all goes on when a lease was renewed over and over.
  const ttls = first ? [RENEWED_TTLS] : []
  for (const [index, kind] of kinds.entries()) if (!over()) await scene.longSection(kind, ttls[index])
  const grants = (): number => scene.clients.reduce((sum, client) => sum + client.grants, 0)
  const before = grants()
  const wentThrough = (): boolean => scene.working.every((client) => client.wentThrough)
  const enough = (): boolean => grants() >= before + least && (!first || wentThrough())
  await scene.until(() => enough() || over(), CALM_AT_MOST_MS)
}

/** Waits until nothing can be laid to the faults any more, and looks whether everything works again. */
async function afterwards(scene: Scene, over: () => boolean): Promise<void> {
  const { stage, diary, expiry } = scene
  const settings = { ttl: stage.ttl, lateExpiry: expiry - stage.ttl }
  if (diary.faults.length === 0 || over()) return
  const last = Math.max(...diary.faults.map((fault) => troubleAfter(fault, settings)))
  await scene.until(over, last - diary.now())
  // One of them shows whether leases are renewed again.
  await calm(scene, [scene.random.pick(['mutex', ...scene.kinds])], over)
}

/** Strikes until the fault was what it says, a few times at the most. */
async function strikeOnce(scene: Scene, one: Nemesis): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const { length: before } = scene.diary.faults
    try {
      await one.strike(scene)
      const own = scene.diary.faults.slice(before).filter(({ kind }) => kind === one.kind)
      if (one.kind === 'none' || own.some(lasted)) return
    } catch (error) {
      if (!(error instanceof Missed)) throw error
      scene.diary.absent(before)
      scene.missed.push({ kind: one.kind, why: error.message })
      if (scene.working.length === 0) return
    }
  }
}

/** Once nothing is in the way any more, everybody is given a lock again. */
async function stuckAfterHeal(scene: Scene): Promise<void> {
  const before = new Map(scene.working.map((client) => [client, client.grants]))
  const bound = scene.expiry + scene.stage.ttl + LIVENESS_SLACK_MS
  const waits = (): [LiveClient, number][] =>
    [...before].filter(([client, grants]) => client.state === 'working' && client.grants <= grants)
  await scene.until(() => waits().length === 0, bound)
  for (const [{ label }] of waits()) {
    const message = `${label} was given nothing in the ${bound} ms after the last fault`
    scene.stuck.push({ check: 'liveness', message, at: scene.diary.now(), clients: [label] })
  }
}

/** Nothing is held or waited for when all have gone home and the leases of the dead have run out. */
async function remainsOf(scene: Scene): Promise<string[]> {
  const end = performance.now() + scene.expiry + LIVENESS_SLACK_MS
  for (;;) {
    const infos = await Promise.all(scene.names.map(({ name }) => scene.inspect(name)))
    const names = infos.filter((info) => info !== undefined)
    const found = checkLeftovers({ names }).map(({ message }) => message)
    if (names.length < infos.length) found.push('the store does not answer')
    if (found.length === 0 || performance.now() > end) return found
    await sleep(100)
  }
}
