import { charged } from '../lib/charged.mjs'
import { measured } from '../lib/measured.mjs'
import { pairs } from '../lib/pairs.mjs'
import { tail } from '../lib/stats.mjs'
import { warmUp } from '../lib/warm-up.mjs'

const FILE = 'w01-sequential.mjs'

/** In memory a pair is shorter than a reading of the clock. */
export const strideFor = ({ store }) => (store === 'memory' ? 64 : 1)

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w1',
  title: 'One client, one name, acquire and release in a loop',
  about: 'Nobody else wants the lock. Times are of one acquire with its release.',
  stores: ['memory', 'redis', 'mysql', 'postgres', 'sqlite', 'memcached', 'holdfast', 'zookeeper'],
  plans: {
    // Many and short: what disturbs the machine for a second then spoils few of them.
    full: {
      rounds: 11,
      ms: 150,
      warmUp: 1000,
      warmSections: 12_000,
      elsewhere: { rounds: 9 },
      at: {
        // Whether the server's thread wakes up on the client's core is decided anew in every slice, and counts for much.
        memcached: { rounds: 25 },
        // A section waits for the server's disk: one task alone would take half a minute until its code is compiled.
        zookeeper: { rounds: 12, ms: 300, warmers: 16 },
      },
    },
    quick: { rounds: 2, ms: 100, warmUp: 400, stores: ['memory', 'redis', 'sqlite'] },
  },
  variants: () => [{ id: 'alone', label: '' }],
  takes: ({ waitingOnly }) => !waitingOnly,
  headline: 'rate',
  columns: ['rate', 'toRaw', 'p50', 'p99', 'max', 'requests', 'clientCpu', 'serverCpu', 'errors'],
  async round(stage, contestant, plan) {
    const { warmers = 1 } = plan
    const params = { name: stage.name(), stride: strideFor(contestant), ms: plan.ms }
    const subject = await stage.subject(contestant, (fresh) =>
      warmUp(plan, (ms) => fresh.run(FILE, 'loops', { ...params, ms, warmers })),
    )
    await leadIn(subject, params)
    const [run, server] = await charged(stage, contestant, () => subject.run(FILE, 'loop', params))
    return { alone: pairMetrics(run, server) }
  },
}

/** @param {{ done: number, times: number[], ms: number, cpu: number, requests: number, errors: number }} run */
export const pairMetrics = (run, server) => ({
  rate: run.done / (run.ms / 1000),
  sections: run.done,
  ...tail(run.times),
  requests: run.requests / run.done,
  serverOps: server.ops / run.done,
  clientCpu: run.cpu / run.done,
  serverCpu: server.cpu / run.done,
  errors: run.errors,
})

export const steps = {
  async loop(session, { name, ms, stride }) {
    if (session.loops !== undefined) return session.loops({ mode: 'names', size: 1, ms, name })
    const lock = session.lock(name)
    await once(lock)
    return measured(() => pairs(lock, { ms, stride }))
  },
  /** To warm up with: several tasks, each with a name of its own. */
  async loops(session, { name, ms, stride, warmers }) {
    if (session.loops !== undefined) return session.loops({ mode: 'names', size: warmers, ms, name })
    const names = Array.from({ length: warmers }, (_, number) => `${name}:${number}`)
    const runs = await Promise.all(names.map((one) => pairs(session.lock(one), { ms, stride })))
    return { done: runs.reduce((sum, run) => sum + run.done, 0) }
  },
}

const LEAD_IN_MS = 100

/**
 * A slice begins with a machine that is still awake from the one before, and goes to sleep between packets after some 50 ms;
 * and with a process whose code and data were driven out of the caches. Neither is what a lock costs.
 */
export const leadIn = (subject, params) => subject.run(FILE, 'loop', { stride: 1, ...params, ms: LEAD_IN_MS })

/** A name's first time may make a row or a node for it, which is set-up. */
export const once = async (lock) => lock.release(await lock.acquire())
