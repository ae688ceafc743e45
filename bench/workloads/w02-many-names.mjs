import { charged } from '../lib/charged.mjs'
import { measured } from '../lib/measured.mjs'
import { pairs } from '../lib/pairs.mjs'
import { warmUp } from '../lib/warm-up.mjs'
import { once, pairMetrics, strideFor } from './w01-sequential.mjs'

const FILE = 'w02-many-names.mjs'

/** On ZooKeeper every name waits for the disk of the server, and eight say what there is to say. */
const SIZES = { holdfast: [64], zookeeper: [8] }
const sizesFor = (store) => SIZES[store] ?? [64, 1024]

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w2',
  title: 'Many names at once, one process',
  about: 'As many tasks as names, each with its own name; nobody waits for anybody.',
  stores: ['memory', 'redis', 'holdfast', 'zookeeper'],
  plans: {
    full: { rounds: 4, ms: 250, warmUp: 700, warmSections: 12_000, elsewhere: { rounds: 5, ms: 300 } },
    quick: { rounds: 1, ms: 150, warmUp: 250, stores: ['memory', 'redis'] },
  },
  variants: (store) =>
    sizesFor(store).map((size) => ({ id: String(size), label: `${size.toLocaleString('en')} names` })),
  // A thousand lock files at once measure the disk.
  takes: ({ waitingOnly, family }) => !waitingOnly && family !== 'proper-lockfile',
  headline: 'rate',
  columns: ['rate', 'toRaw', 'p50', 'p99', 'max', 'requests', 'clientCpu', 'serverCpu', 'errors'],
  async round(stage, contestant, plan) {
    const results = {}
    for (const size of sizesFor(contestant.store)) {
      const params = { name: stage.name(), size, stride: strideFor(contestant), ms: plan.ms }
      const warm = (fresh) => warmUp(plan, (ms) => fresh.run(FILE, 'loops', { ...params, ms }))
      const subject = await stage.subject(contestant, warm)
      const [run, server] = await charged(stage, contestant, () => subject.run(FILE, 'loops', params))
      results[size] = pairMetrics(run, server)
    }
    return results
  },
}

export const steps = {
  async loops(session, { name, size, ms, stride }) {
    if (session.loops !== undefined) return session.loops({ mode: 'names', size, ms, name })
    const locks = Array.from({ length: size }, (_, number) => session.lock(`${name}:${number}`))
    await Promise.all(locks.map(once))
    return measured(async () => {
      const runs = await Promise.all(locks.map((lock) => pairs(lock, { ms, stride })))
      return {
        done: runs.reduce((sum, run) => sum + run.done, 0),
        errors: runs.reduce((sum, run) => sum + run.errors, 0),
        times: Float64Array.from(runs.flatMap((run) => run.times)),
      }
    })
  },
}
