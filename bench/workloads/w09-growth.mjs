import { fightMetrics } from '../lib/analyse.mjs'
import { contend } from '../lib/contend.mjs'
import { measured } from '../lib/measured.mjs'
import { pairs } from '../lib/pairs.mjs'
import { strideFor } from './w01-sequential.mjs'
import { fightTogether } from './w04-several-processes.mjs'
import { steps as holding } from './w06-held-leases.mjs'

const FILE = 'w09-growth.mjs'
const TASKS_A_PROCESS = 8
const TTL = 15_000

/** What grows, and to where. */
const SERIES = [
  {
    id: 'waiters',
    unit: 'waiters of one process',
    stores: ['memory', 'redis'],
    full: [1, 10, 100, 1000, 10_000],
    quick: [1, 1000],
  },
  {
    id: 'strangers',
    unit: 'waiters, each with its own session',
    stores: ['redis'],
    full: [1, 10, 100, 1000],
    quick: [1, 100],
  },
  {
    id: 'leases',
    unit: 'leases held',
    stores: ['memory', 'redis'],
    full: [1, 100, 10_000, 100_000],
    quick: [1, 10_000],
  },
  {
    id: 'processes',
    unit: `processes of ${TASKS_A_PROCESS} tasks`,
    stores: ['redis'],
    full: [1, 2, 4, 8],
    quick: [1, 4],
  },
]

const sizes = (series, plan) => series[plan.sizes]

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w9',
  title: 'Growth: what a section costs when there is more of everything',
  about:
    'Microseconds a section, ~0 work; with leases held, of an acquire and release of another name beside them.',
  stores: ['memory', 'redis'],
  plans: {
    full: { rounds: 1, ms: 200, warmUp: 200, sizes: 'full' },
    quick: { rounds: 1, ms: 200, warmUp: 100, sizes: 'quick', stores: [] },
  },
  variants: (store, plan) =>
    SERIES.filter(({ stores }) => stores.includes(store)).flatMap((series) =>
      sizes(series, plan).map((size) => ({
        id: `${series.id}-${size}`,
        label: `${size.toLocaleString('en')} ${series.unit}`,
        series: series.id,
        seriesLabel: series.unit,
        x: size,
      })),
    ),
  takes: ({ growth }) => growth === true,
  quickTakes: ({ role, waitingOnly }) => role === 'ours' && !waitingOnly,
  headline: 'cost',
  columns: ['cost', 'rate', 'p99', 'requests', 'clientCpu', 'lost', 'errors'],
  async round(stage, contestant, plan) {
    const results = {}
    for (const series of SERIES.filter(({ stores }) => stores.includes(contestant.store))) {
      for (const size of sizes(series, plan)) {
        const metrics = await GROW[series.id](stage, contestant, size, plan)
        if (metrics !== undefined) results[`${series.id}-${size}`] = { ...metrics, cost: 1e6 / metrics.rate }
      }
    }
    return results
  },
}

/** A process of its own for every point: what the last point left behind must not slow down the next. */
async function alone(stage, contestant, step, params, plan) {
  const [subject] = await stage.crew(contestant, 1)
  try {
    const run = (ms) =>
      subject.run(FILE, step, { ...params, ms, name: stage.name(), stride: strideFor(contestant) })
    await run(plan.warmUp)
    return await run(plan.ms)
  } finally {
    await subject.close()
  }
}

const GROW = {
  // One waiter and the one who holds it.
  waiters: async (stage, contestant, size, plan) =>
    fightMetrics([await alone(stage, contestant, 'fight', { tasks: size + 1 }, plan)]),
  strangers: async (stage, contestant, size, plan) =>
    contestant.role === 'ours'
      ? fightMetrics([await alone(stage, contestant, 'strangers', { tasks: size + 1 }, plan)])
      : undefined,
  leases: async (stage, contestant, size, plan) => {
    // async-mutex and its kind hold nothing that would have to be kept alive.
    if (contestant.role !== 'ours' && !contestant.renews) return undefined
    const { done, ms, requests, cpu, errors } = await alone(
      stage,
      contestant,
      'beside',
      { leases: size },
      plan,
    )
    return { rate: done / (ms / 1000), requests: requests / done, clientCpu: cpu / done, errors }
  },
  processes: async (stage, contestant, size, plan) => {
    const crew = await stage.crew(contestant, size)
    try {
      const fight = { tasks: TASKS_A_PROCESS, work: 0 }
      await fightTogether(stage, crew, { ...fight, ms: plan.warmUp })
      return await fightTogether(stage, crew, { ...fight, ms: plan.ms })
    } finally {
      await Promise.all(crew.map((subject) => subject.close()))
    }
  },
}

let alreadyHolding = false

export const steps = {
  fight: (session, { name, tasks, ms, stride }) =>
    contend(() => session.lock(name), { tasks, ms, work: 0, pick: 'any', stride, drainMs: 1000 }),
  strangers: (session, { name, tasks, ms, stride }) =>
    contend(() => session.strangersLock(name), { tasks, ms, work: 0, pick: 'any', stride, drainMs: 1000 }),
  async beside(session, { name, leases, ms, stride }) {
    if (!alreadyHolding) {
      alreadyHolding = true
      await holding.hold(session, { name: `${name}:held`, count: leases, ttl: TTL })
    }
    return measured(() => pairs(session.lock(name), { ms, stride }))
  },
}
