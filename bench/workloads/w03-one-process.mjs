import { fightMetrics } from '../lib/analyse.mjs'
import { charged } from '../lib/charged.mjs'
import { contend } from '../lib/contend.mjs'
import { measured } from '../lib/measured.mjs'
import { pairs } from '../lib/pairs.mjs'
import { pairMetrics, strideFor } from './w01-sequential.mjs'

const FILE = 'w03-one-process.mjs'
const TASKS = 100
const PICKS = ['any', 'other']

/** Whether it can stand in line at all: the raw limit on Redis cannot, and runs alone beside the others. */
export const waits = ({ role, store }) => role !== 'limit' || store === 'memory'

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w3',
  title: `One name, one process, ${TASKS} tasks, ~0 work`,
  about:
    '"any": any task may win again at once. "other": a task that had a section asks again only after another one ' +
    'had its own, which is what contention means. The raw limit is one client alone. Times are waits for the lock.',
  stores: ['memory', 'redis'],
  plans: {
    full: { rounds: 1, ms: 400, warmUp: 500 },
    quick: { rounds: 1, ms: 200, warmUp: 200 },
  },
  variants: () => [
    { id: 'any', label: 'any task may win' },
    { id: 'other', label: 'another task each time' },
  ],
  takes: ({ secondary, id }) => !secondary && id !== 'proper-lockfile',
  headline: 'rate',
  columns: [
    'rate',
    'toRaw',
    'p50',
    'p99',
    'max',
    'switchTask',
    'fairTask',
    'requests',
    'clientCpu',
    'lost',
    'errors',
  ],
  async round(stage, contestant, plan) {
    const results = {}
    for (const pick of PICKS) {
      const params = {
        name: stage.name(),
        pick,
        stride: strideFor(contestant),
        ms: plan.ms,
        alone: !waits(contestant),
      }
      const warm = (fresh) => fresh.run(FILE, 'fight', { ...params, ms: plan.warmUp })
      const subject = await stage.subject(contestant, warm)
      const [run, server] = await charged(stage, contestant, () => subject.run(FILE, 'fight', params))
      if (params.alone) {
        results[pick] = pairMetrics(run, server)
        continue
      }
      const metrics = fightMetrics([run])
      results[pick] = {
        ...metrics,
        serverCpu: server.cpu / metrics.sections,
        serverOps: server.ops / metrics.sections,
      }
      // Whoever has not finished by now would still be at it in somebody else's round.
      if (!run.drained) await stage.dismiss(contestant)
    }
    return results
  },
}

export const steps = {
  fight: (session, { name, pick, stride, ms, alone }) =>
    alone
      ? measured(() => pairs(session.lock(name), { ms }))
      : contend(() => session.lock(name), { tasks: TASKS, ms, work: 0, pick, stride, drainMs: 1000 }),
}
