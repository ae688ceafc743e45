import { fightMetrics } from '../lib/analyse.mjs'
import { charged } from '../lib/charged.mjs'
import { contend } from '../lib/contend.mjs'
import { pairMetrics } from './w01-sequential.mjs'

const FILE = 'w15-one-name-zookeeper.mjs'
const SIZE = 16
const MODES = ['tasks', 'sessions']

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w15',
  title: `One name, ${SIZE} contenders in one process, ~0 work`,
  about: `All in one session, or each in a session of its own, as ${SIZE} processes would be.`,
  stores: ['zookeeper'],
  plans: {
    full: { rounds: 4, ms: 600, warmUp: 1000 },
    quick: { rounds: 1, ms: 300, warmUp: 300, stores: [] },
  },
  variants: () => [
    { id: 'tasks', label: 'one session' },
    { id: 'sessions', label: `${SIZE} sessions` },
  ],
  takes: ({ role }) => role !== 'limit',
  headline: 'rate',
  columns: [
    'rate',
    'p50',
    'p99',
    'max',
    'switchTask',
    'requests',
    'clientCpu',
    'serverCpu',
    'lost',
    'errors',
  ],
  async round(stage, contestant, plan) {
    const results = {}
    // In both modes: to somebody who queues locally first they are two different programs.
    const warm = async (fresh) => {
      for (const mode of MODES) await fresh.run(FILE, 'fight', { mode, name: stage.name(), ms: plan.warmUp })
    }
    const subject = await stage.subject(contestant, warm)
    for (const mode of MODES) {
      const params = { mode, name: stage.name(), ms: plan.ms }
      const [run, server] = await charged(stage, contestant, () => subject.run(FILE, 'fight', params))
      const metrics = run.times === undefined ? fightMetrics([run]) : pairMetrics(run, server)
      results[mode] = { ...metrics, serverCpu: server.cpu / metrics.sections }
    }
    return results
  },
}

let clients

export const steps = {
  async fight(session, { mode, name, ms }) {
    if (session.loops !== undefined) return session.loops({ mode, size: SIZE, ms, name })
    if (mode === 'sessions') clients ??= await session.clients(SIZE)
    const locks = mode === 'sessions' ? clients.locks(name) : undefined
    const lockOf = (task) => locks?.[task] ?? session.lock(name)
    return contend(lockOf, { tasks: SIZE, ms, work: 0, pick: 'any', drainMs: 5000 })
  },
}
