import { charged } from '../lib/charged.mjs'
import { sleep, within } from '../lib/clock.mjs'
import { Failures, measured } from '../lib/measured.mjs'

const FILE = 'w05-idle-waiters.mjs'
const WAITERS = 1000

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w5',
  title: `${WAITERS.toLocaleString('en')} tasks of one process wait for a lock that another process holds`,
  about:
    'First they only wait: what that costs a second. Then the holder lets go: how long until all of them have had ' +
    'their turn. The raw limit is a process that does nothing.',
  stores: ['redis'],
  plans: {
    // Longer than the time between two signs of life of a waiting process.
    full: { rounds: 1, ms: 1500, settle: 300, drain: 1000, warmUp: 0 },
    quick: { rounds: 1, ms: 500, settle: 200, drain: 500, warmUp: 0 },
  },
  variants: () => [{ id: 'idle', label: '' }],
  takes: ({ secondary, family }) => !secondary && family !== 'proper-lockfile',
  quickTakes: ({ role, family }) =>
    role !== 'peer' || family === 'redlock' || family === 'simple-redis-mutex',
  headline: 'idleRequests',
  columns: ['idleRequests', 'idleCpu', 'idleServerCpu', 'drainMs', 'through', 'requests', 'errors'],
  async round(stage, contestant, plan) {
    const [holder, queue] = await stage.crew(contestant, 2)
    const waiters = contestant.role === 'limit' ? 0 : WAITERS
    try {
      const name = stage.name()
      await holder.run(FILE, 'take', { name })
      await queue.run(FILE, 'queue', { name, waiters })
      await sleep(plan.settle)
      const [idle, server] = await charged(stage, contestant, () => queue.run(FILE, 'idle', plan))
      const drained = queue.run(FILE, 'drain', { waiters, limit: plan.drain })
      await holder.run(FILE, 'give', undefined)
      return { idle: idleMetrics(idle, server, await drained, waiters) }
    } finally {
      await Promise.all([holder.close(), queue.close()])
    }
  },
}

const idleMetrics = (idle, server, drained, waiters) => ({
  idleRequests: idle.requests / (idle.ms / 1000),
  idleCpu: idle.cpu / (idle.ms * 10),
  idleServerCpu: server.cpu / (idle.ms * 10),
  ...(waiters > 0 && {
    drainMs: drained.all ? drained.ms : NaN,
    through: drained.done,
    requests: drained.requests / Math.max(1, drained.done),
    errors: drained.errors,
  }),
})

let held
const state = { done: 0, failures: new Failures(), all: Promise.resolve() }

export const steps = {
  async take(session, { name }) {
    const lock = session.lock(name)
    held = { lock, lease: await lock.acquire() }
  },
  async give() {
    await held.lock.release(held.lease)
  },
  async queue(session, { name, waiters }) {
    const one = async () => {
      const lock = session.lock(name)
      try {
        await lock.release(await lock.acquire())
        state.done++
      } catch (error) {
        state.failures.add(error)
      }
    }
    state.all = Promise.all(Array.from({ length: waiters }, one))
  },
  idle: (_session, { ms }) => measured(() => sleep(ms)),
  drain: (_session, { limit }) =>
    measured(async () => ({
      all: await within(limit, state.all),
      done: state.done,
      errors: state.failures.total,
      failures: state.failures.toJSON(),
    })),
}
