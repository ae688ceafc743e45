import { setTimeout as sleep } from 'node:timers/promises'

import { checkExclusivity } from '../../testkit/checkers/exclusivity.ts'
import { checkFifo } from '../../testkit/checkers/fifo.ts'
import { checkLeftovers } from '../../testkit/checkers/leftovers.ts'
import { checkLinearizability } from '../../testkit/checkers/linearizability.ts'
import { fencedMutex } from '../../testkit/checkers/models.ts'
import { operationsOf } from '../../testkit/checkers/operation.ts'
import { checkTokenOrder } from '../../testkit/checkers/token-order.ts'
import { holdsOf } from '../../testkit/holds.ts'
import type { ViolationRecord } from '../record.ts'
import type { LiveClient } from './client.ts'
import { overlapsOf } from './overlaps.ts'
import { resourceViolations } from './resource-checks.ts'
import type { Scene } from './scene.ts'
import { since } from './timeline.ts'

export interface Judgement {
  readonly violations: readonly ViolationRecord[]
  /** Checks that could not decide, and why. */
  readonly undecided: ReadonlyMap<string, string>
}

const LIVENESS_SLACK_MS = 5000

/** Heals everything, lets it come to rest, and asks the checkers. */
export async function judgement(scene: Scene): Promise<Judgement> {
  await scene.heal()
  const stuck = await stuckAfterHeal(scene)
  await scene.finish()
  const leftovers = await remains(scene)
  const { diary } = scene
  const logs = await scene.resource.logs()
  for (const { name, fenced } of logs) {
    for (const { kind, client, token, accepted, at } of fenced) {
      if (kind === 'read' && accepted) continue
      diary.note({ client, name, kind: accepted ? 'write' : 'write-refused', token: String(token) }, { at })
    }
  }
  const holds = holdsOf(diary.history)
  const overlaps = checkExclusivity(holds).length === 0 ? [] : overlapsOf(holds)
  const order = checkLinearizability(operationsOf(diary.history), fencedMutex)
  const undecided = new Map<string, string>()
  if (order.verdict === 'unknown') undecided.set('linearizability', `given up after ${order.steps} steps`)
  if (!holds.some(({ queued }) => queued !== undefined)) undecided.set('fifo', 'nobody was seen in line')
  const violations = [
    ...overlaps.map(({ name, clients, tokens, from, to }) => ({
      check: 'exclusivity',
      message: `${clients.join(' and ')} both believe that they hold "${name}" for ${Math.round(Number(to - from) / 1e6)} ms (tokens ${tokens.join(' and ')})`,
      at: since(diary.began, from),
      clients,
    })),
    ...checkTokenOrder(holds).map(({ message }) => ({ check: 'token order', message })),
    ...resourceViolations(logs, diary.began),
    ...checkFifo(holds).violations.map(({ message }) => ({ check: 'fifo', message })),
    ...stuck,
    ...leftovers,
    ...order.violations.map(({ message }) => ({ check: 'linearizability', message })),
    ...scene.noise.map((message) => ({ check: 'noise', message })),
  ]
  return { violations, undecided }
}

/** Once nothing is in the way any more, everybody is given the lock again. */
async function stuckAfterHeal(scene: Scene): Promise<ViolationRecord[]> {
  const before = new Map(scene.working.map((client) => [client, client.grants]))
  const bound = scene.expiry + scene.stage.ttl + LIVENESS_SLACK_MS
  const waits = (): [LiveClient, number][] =>
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
