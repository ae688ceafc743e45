import { monitorEventLoopDelay } from 'node:perf_hooks'

import { charged } from '../lib/charged.mjs'
import { sleep } from '../lib/clock.mjs'
import { measured } from '../lib/measured.mjs'

const FILE = 'w06-held-leases.mjs'
const SIZES = {
  redis: { leases: 10_000, ttl: 3000 },
  memory: { leases: 100_000, ttl: 15_000 },
}
const AT_ONCE = 500
/** Coarse on purpose: watching the loop must not be what keeps it busy. */
const RESOLUTION_MS = 20
const NS = 1e6

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w6',
  title: 'Many leases held and renewed by one process',
  about:
    'What keeping them costs a second. Libraries that do not renew are left out; the raw limit is a process that ' +
    'holds nothing.',
  stores: ['memory', 'redis'],
  plans: {
    // Longer than a ttl on Redis, and longer than the time between two renewals in memory.
    full: {
      rounds: 1,
      ms: { redis: 4500, memory: 10_500 },
      settle: { redis: 3000, memory: 5500 },
      warmUp: 0,
    },
    quick: {
      rounds: 1,
      ms: { redis: 3500, memory: 5500 },
      settle: { redis: 500, memory: 0 },
      warmUp: 0,
      stores: ['redis'],
    },
  },
  variants: (store) => {
    const { leases, ttl } = SIZES[store]
    return [{ id: 'held', label: `${leases.toLocaleString('en')} leases, ttl ${ttl / 1000} s` }]
  },
  takes: ({ waitingOnly, secondary, role, renews }) =>
    !waitingOnly && !secondary && (role !== 'peer' || renews === true),
  quickTakes: ({ role, family }) => role !== 'peer' || family === 'redis-semaphore',
  headline: 'idleRequests',
  columns: ['idleRequests', 'idleCpu', 'idleServerCpu', 'loopP99', 'loopMax', 'stillHeld', 'rss', 'errors'],
  async round(stage, contestant, plan) {
    const { leases, ttl } = SIZES[contestant.store]
    const ms = plan.ms[contestant.store]
    const [subject] = await stage.crew(contestant, 1)
    const count = contestant.role === 'limit' ? 0 : leases
    try {
      const { failed } = await subject.run(FILE, 'hold', { name: stage.name(), count, ttl })
      // What it costs to keep them, not to get them: the first renewals run code that is not compiled yet.
      await sleep(plan.settle[contestant.store])
      const [run, server] = await charged(stage, contestant, () => subject.run(FILE, 'watch', { ms }))
      return {
        held: {
          idleRequests: run.requests / (run.ms / 1000),
          idleCpu: run.cpu / (run.ms * 10),
          idleServerCpu: server.cpu / (run.ms * 10),
          loopP99: run.loopP99,
          loopMax: run.loopMax,
          rss: run.rss,
          stillHeld: run.stillHeld,
          errors: failed + subject.strays,
        },
      }
    } finally {
      await subject.close()
    }
  },
}

const leases = []

export const steps = {
  /** In portions: a burst of ten thousand requests would still be under way when the first has to be renewed. */
  async hold(session, { name, count, ttl }) {
    let failed = 0
    for (let first = 0; first < count; first += AT_ONCE) {
      const numbers = Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, offset) => first + offset)
      const portion = await Promise.allSettled(
        numbers.map((number) => session.hold(`${name}:${number}`, ttl)),
      )
      for (const { status, value } of portion) {
        if (status === 'fulfilled') leases.push(value)
        else failed++
      }
    }
    return { failed }
  },
  async watch(_session, { ms }) {
    const loop = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
    loop.enable()
    const cost = await measured(() => sleep(ms))
    loop.disable()
    return {
      ...cost,
      // The histogram has the time between two ticks of its timer; what is above the interval is delay.
      loopP99: Math.max(0, loop.percentile(99) / NS - RESOLUTION_MS),
      loopMax: Math.max(0, loop.max / NS - RESOLUTION_MS),
      rss: process.memoryUsage().rss / 2 ** 20,
      stillHeld: leases.filter(({ held }) => held()).length,
    }
  },
}
