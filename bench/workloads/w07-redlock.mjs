import { measured } from '../lib/measured.mjs'
import { tail } from '../lib/stats.mjs'
import { warmUp } from '../lib/warm-up.mjs'
import { fightTogether } from './w04-several-processes.mjs'

const FILE = 'w07-redlock.mjs'
const SEQUENTIAL = 'w01-sequential.mjs'
const PROCESSES = 3
const SOME = 1

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w7',
  title: 'Redlock on five servers, healthy and with one stopped',
  about:
    'Times are of the acquire alone. "Stopped" is a server that stands still with its connections open; what its first ' +
    'silence costs is counted too. The fight is between three processes with one task each.',
  stores: ['redlock'],
  plans: {
    // Five servers make sections slow: one task alone would take long until its code is compiled.
    full: { rounds: 6, ms: 250, warmUp: 800, warmSections: 12_000, warmers: 8, fightMs: 600 },
    quick: { rounds: 1, ms: 300, warmUp: 300, warmers: 8, fightMs: 500, stores: [] },
  },
  variants: () => [
    { id: 'healthy', label: 'all well' },
    { id: 'stopped', label: 'one stopped' },
    { id: 'fight', label: `${PROCESSES} processes, one name` },
  ],
  takes: ({ store }) => store === 'redlock',
  headline: 'rate',
  columns: ['rate', 'toRaw', 'p50', 'p99', 'toHealthy', 'max', 'lost', 'overlaps', 'errors'],
  async round(stage, contestant, plan) {
    const params = { name: stage.name(), ms: plan.ms }
    const subject = await stage.subject(contestant, (fresh) =>
      warmUp(plan, (ms) =>
        fresh.run(SEQUENTIAL, 'loops', { name: stage.name(), ms, stride: 1, warmers: plan.warmers }),
      ),
    )
    const healthy = await subject.run(FILE, 'loop', params)
    const results = { healthy: metricsOf(healthy) }
    // By hand nobody waits for a majority only.
    if (contestant.role === 'limit') return results
    const { pause, resume } = stage.server('redlock')
    await pause()
    const stopped = await subject.run(FILE, 'loop', params).finally(resume)
    const metrics = metricsOf(stopped)
    results.stopped = { ...metrics, toHealthy: metrics.p99 / results.healthy.p99 }
    const crew = await stage.crew(contestant, PROCESSES)
    try {
      results.fight = await fightTogether(stage, crew, {
        tasks: SOME,
        ms: plan.fightMs,
        work: 0,
        drainMs: 1000,
      })
    } finally {
      await Promise.all(crew.map((one) => one.close()))
    }
    return results
  },
}

const metricsOf = (run) => ({
  rate: run.done / (run.ms / 1000),
  sections: run.done,
  ...tail(run.times),
  errors: run.errors,
})

export const steps = {
  loop: (session, { name, ms }) => measured(() => acquires(session.lock(name), ms)),
}

/** As `pairs`, with the time of the acquire alone. */
async function acquires(lock, ms) {
  const times = []
  let errors = 0
  const began = performance.now()
  while (performance.now() - began < ms) {
    const asked = performance.now()
    try {
      const held = await lock.acquire()
      times.push(performance.now() - asked)
      await lock.release(held)
    } catch {
      errors++
    }
  }
  return { done: times.length, times, ms: performance.now() - began, errors }
}
