import { measured } from '../lib/measured.mjs'
import { tail } from '../lib/stats.mjs'
import { warmUp } from '../lib/warm-up.mjs'
import { leadIn } from './w01-sequential.mjs'
import { fightTogether } from './w04-several-processes.mjs'

const FILE = 'w07-redlock.mjs'
const SEQUENTIAL = 'w01-sequential.mjs'
const PROCESSES = 3
const SOME = 1
/** How often a server stands still before anything is measured. */
const STOPS = 2

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w7',
  title: 'Redlock on five servers, healthy and with one stopped',
  about:
    'Times are of the acquire alone. "Stopped" is a server that stands still with its connections open; what its first ' +
    'silence costs is counted too. The fight is between three processes with one task each.',
  stores: ['redlock'],
  plans: {
    // Five servers make sections slow: one task alone would take long until its code is compiled. A 99th percentile of some
    // hundred sections is the luck of a few. A fight is long enough that what a process gets before the others have begun
    // does not decide it: those who retry blindly are fast for so long, and stand in each other's way for the rest.
    full: { rounds: 6, ms: 800, warmUp: 800, warmSections: 12_000, warmers: 8, stopsMs: 500, fightMs: 2_000 },
    quick: { rounds: 1, ms: 300, warmUp: 300, warmers: 8, stopsMs: 200, fightMs: 500, stores: [] },
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
    const subject = await stage.subject(contestant, (fresh) => prepare(stage, contestant, fresh, plan))
    await leadIn(subject, params)
    const healthy = await subject.run(FILE, 'loop', params)
    const results = { healthy: metricsOf(healthy) }
    // By hand nobody waits for a majority only.
    if (contestant.role === 'limit') return results
    const metrics = metricsOf(await whileStopped(stage, () => subject.run(FILE, 'loop', params)))
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

/** Compiled, and compiled again with what a stopped server teaches: else the rounds after the first stop would pay for it. */
async function prepare(stage, { role }, fresh, plan) {
  await warmUp(plan, (ms) =>
    fresh.run(SEQUENTIAL, 'loops', { name: stage.name(), ms, stride: 1, warmers: plan.warmers }),
  )
  if (role === 'limit') return
  const loop = () => fresh.run(FILE, 'loop', { name: stage.name(), ms: plan.stopsMs })
  for (let stops = 0; stops < STOPS; stops++) {
    await whileStopped(stage, loop)
    await loop()
  }
}

async function whileStopped(stage, body) {
  const { pause, resume } = stage.server('redlock')
  await pause()
  return await body().finally(resume)
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
