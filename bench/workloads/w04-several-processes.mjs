import { join } from 'node:path'

import { fightMetrics } from '../lib/analyse.mjs'
import { charged } from '../lib/charged.mjs'
import { monotonic } from '../lib/clock.mjs'
import { contend } from '../lib/contend.mjs'
import { measured } from '../lib/measured.mjs'
import { pairs } from '../lib/pairs.mjs'
import { FileWitness } from '../lib/witness.mjs'
import { pairMetrics } from './w01-sequential.mjs'
import { waits } from './w03-one-process.mjs'

const FILE = 'w04-several-processes.mjs'
const PROCESSES = 4
const TASKS = 8
const WORKS = [0, 2]
const HEAD_START_MS = 30

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w4',
  title: `One name, ${PROCESSES} processes with ${TASKS} tasks each`,
  about:
    'The raw limit is one client alone. Times are waits for the lock; "worst wait" is the longest wait of a task as a ' +
    'multiple of its fair share; "switched" is the share of sections that went to another process than the last.',
  stores: ['redis', 'mysql', 'postgres', 'sqlite'],
  plans: {
    full: {
      rounds: 1,
      ms: 1000,
      longMs: 1200,
      warmUp: 600,
      elsewhere: { rounds: 1, ms: 1000, longMs: 600, warmUp: 400 },
    },
    quick: { rounds: 1, ms: 400, longMs: 600, warmUp: 200, stores: ['redis'] },
  },
  variants: () => [
    { id: 'work0', label: '~0 work' },
    { id: 'work2', label: '2 ms of work' },
  ],
  takes: ({ secondary, id }) => !secondary && id !== 'proper-lockfile',
  headline: 'rate',
  columns: [
    'rate',
    'toRaw',
    'p50',
    'p99',
    'max',
    'waitShare',
    'switchProcess',
    'fairProcess',
    'fairTask',
    'starved',
    'requests',
    'clientCpu',
    'serverCpu',
    'lost',
    'overlaps',
    'errors',
  ],
  async round(stage, contestant, plan) {
    if (!waits(contestant)) return alone(stage, contestant, plan)
    const crew = await stage.crew(contestant, PROCESSES)
    try {
      await fightTogether(stage, crew, { tasks: TASKS, ms: plan.warmUp, work: 0 })
      const results = {}
      for (const work of WORKS) {
        const params = { tasks: TASKS, ms: work === 0 ? plan.ms : plan.longMs, work }
        const [metrics, server] = await charged(stage, contestant, () => fightTogether(stage, crew, params))
        results[`work${work}`] = {
          ...metrics,
          serverCpu: server.cpu / metrics.sections,
          serverOps: server.ops / metrics.sections,
        }
      }
      return results
    } finally {
      await Promise.all(crew.map((subject) => subject.close()))
    }
  },
}

/** All processes begin at the same moment and fight for one name. */
export async function fightTogether(stage, crew, fight) {
  const name = stage.name()
  const witness = join(stage.folder, encodeURIComponent(name))
  FileWitness.create(witness)
  const params = { ...fight, name, witness, startAt: monotonic() + HEAD_START_MS }
  const runs = await Promise.all(crew.map((subject) => subject.run(FILE, 'fight', params)))
  // A process that is still waiting may yet write; then the count would be compared too early.
  const settled = runs.every((run) => run.drained)
  return fightMetrics(runs, { witnessed: settled ? FileWitness.valueOf(witness) : undefined })
}

async function alone(stage, contestant, plan) {
  const params = { name: stage.name(), ms: plan.ms }
  const subject = await stage.subject(contestant, (fresh) =>
    fresh.run(FILE, 'alone', { ...params, ms: plan.warmUp }),
  )
  const [run, server] = await charged(stage, contestant, () => subject.run(FILE, 'alone', params))
  return { work0: pairMetrics(run, server) }
}

export const steps = {
  fight: (session, { name, ...fight }) =>
    contend(() => session.lock(name), { pick: 'any', drainMs: 3000, ...fight }),
  alone: (session, { name, ms }) => measured(() => pairs(session.lock(name), { ms })),
}
