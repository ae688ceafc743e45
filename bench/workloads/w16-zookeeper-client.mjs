import { charged } from '../lib/charged.mjs'
import { measured } from '../lib/measured.mjs'
import { pairs } from '../lib/pairs.mjs'
import { warmUp } from '../lib/warm-up.mjs'
import { pairMetrics } from './w01-sequential.mjs'

const FILE = 'w16-zookeeper-client.mjs'
const IN_FLIGHT = 256

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w16',
  title: `ZooKeeper clients: create and delete, ${IN_FLIGHT} in flight`,
  about: 'No lock: what the client itself can send and read, with one connection.',
  stores: ['zookeeper'],
  plans: {
    full: { rounds: 5, ms: 500, warmUp: 1500, warmSections: 12_000 },
    quick: { rounds: 1, ms: 300, warmUp: 500, stores: [] },
  },
  variants: () => [{ id: 'in-flight', label: '' }],
  takes: ({ only }) => only?.includes('w16') === true,
  headline: 'rate',
  columns: ['rate', 'p50', 'p99', 'max', 'clientCpu', 'serverCpu', 'errors'],
  async round(stage, contestant, plan) {
    const warm = (fresh) => warmUp(plan, (ms) => fresh.run(FILE, 'loops', { ms }))
    const subject = await stage.subject(contestant, warm)
    const [run, server] = await charged(stage, contestant, () => subject.run(FILE, 'loops', plan))
    return { 'in-flight': pairMetrics(run, server) }
  },
}

export const steps = {
  loops: (session, { ms }) =>
    measured(async () => {
      const runs = await Promise.all(Array.from({ length: IN_FLIGHT }, () => pairs(session.lock(''), { ms })))
      return {
        done: runs.reduce((sum, run) => sum + run.done, 0),
        errors: runs.reduce((sum, run) => sum + run.errors, 0),
        times: Float64Array.from(runs.flatMap((run) => run.times)),
      }
    }),
}
