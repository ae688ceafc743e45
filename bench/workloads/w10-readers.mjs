import { merged, overlaps } from '../lib/analyse.mjs'
import { charged } from '../lib/charged.mjs'
import { monotonic } from '../lib/clock.mjs'
import { mixed } from '../lib/mixed.mjs'
import { tail } from '../lib/stats.mjs'

const FILE = 'w10-readers.mjs'
const PROCESSES = { memory: 1, redis: 4 }
const TASKS = { memory: 64, redis: 16 }
const WRITES = 0.05
const WORK_MS = 1
const HEAD_START_MS = 30

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w10',
  title: 'A read-mostly read-write lock',
  about:
    `64 tasks, ${WRITES * 100} % of sections write, ${WORK_MS} ms of work in each. Libraries without a read lock take ` +
    'their exclusive lock for both, as their users must.',
  stores: ['memory', 'redis'],
  plans: {
    full: { rounds: 1, ms: 1500, warmUp: 300 },
    quick: { rounds: 1, ms: 500, warmUp: 200, stores: [] },
  },
  variants: () => [{ id: 'mixed', label: '' }],
  takes: ({ secondary, growth, family, waitingOnly }) =>
    !secondary && (growth === true || (family === 'live-mutex' && waitingOnly === true)),
  quickTakes: ({ role, family }) => role === 'ours' || family === 'redlock' || family === 'async-mutex',
  headline: 'rate',
  columns: [
    'rate',
    'readP50',
    'readP99',
    'writeP50',
    'writeP99',
    'requests',
    'clientCpu',
    'overlaps',
    'errors',
  ],
  async round(stage, contestant, plan) {
    const crew = await stage.crew(contestant, PROCESSES[contestant.store])
    const together = (ms) => {
      const params = {
        tasks: TASKS[contestant.store],
        ms,
        name: stage.name(),
        startAt: monotonic() + HEAD_START_MS,
      }
      return Promise.all(crew.map((subject, seed) => subject.run(FILE, 'mixed', { ...params, seed })))
    }
    try {
      await together(plan.warmUp)
      const [runs, server] = await charged(stage, contestant, () => together(plan.ms))
      return { mixed: mixedMetrics(runs, server) }
    } finally {
      await Promise.all(crew.map((subject) => subject.close()))
    }
  },
}

function mixedMetrics(runs, server) {
  const all = merged(runs.map((run) => run.log))
  const end = Math.max(...runs.map((run) => run.end))
  const start = Math.min(...runs.map((run) => run.start))
  const inTime = all.filter(({ entered }) => entered < end)
  const waits = (wanted) =>
    tail(inTime.filter(({ write }) => write === wanted).map((one) => one.entered - one.asked))
  const reads = waits(false)
  const writes = waits(true)
  const total = (field) => runs.reduce((sum, run) => sum + run[field], 0)
  return {
    rate: inTime.length / ((end - start) / 1000),
    readP50: reads.p50,
    readP99: reads.p99,
    writeP50: writes.p50,
    writeP99: writes.p99,
    requests: total('requests') / all.length,
    clientCpu: total('cpu') / all.length,
    serverCpu: server.cpu / all.length,
    overlaps: overlaps(all),
    errors: total('errors'),
  }
}

export const steps = {
  mixed(session, { name, ...params }) {
    const locks = () => {
      if (session.shared !== undefined) return session.shared(name)
      const exclusive = session.lock(name)
      return { read: exclusive, write: exclusive }
    }
    return mixed(locks, { work: WORK_MS, writes: WRITES, ...params })
  },
}
