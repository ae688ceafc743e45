import { charged } from '../lib/charged.mjs'
import { sleep, within } from '../lib/clock.mjs'
import { measured } from '../lib/measured.mjs'

const FILE = 'w12-waiting-clients.mjs'
const CLIENTS = 1000

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w12',
  title: `${CLIENTS.toLocaleString('en')} clients, each with a connection of its own, wait for one lock`,
  about:
    'First they only wait: what that costs a second, the server and the one process that has them all. Then the ' +
    'holder lets go: how long until all of them have had their turn, each by a hand-over.',
  stores: ['holdfast'],
  plans: {
    full: { rounds: 1, ms: 4000, settle: 1000, drain: 20_000, warmUp: 0 },
    quick: { rounds: 1, ms: 1000, settle: 500, drain: 5000, warmUp: 0, stores: [] },
  },
  variants: () => [{ id: 'idle', label: '' }],
  takes: ({ family, waitingOnly }) => family === 'holdfast' && !waitingOnly,
  headline: 'idleServerCpu',
  columns: ['idleServerCpu', 'idleCpu', 'idleRequests', 'drainMs', 'through'],
  async round(stage, contestant, plan) {
    const [holder, queue] = await stage.crew(contestant, 2)
    try {
      const name = stage.name()
      await holder.run(FILE, 'take', { name })
      await queue.run(FILE, 'queue', { name })
      await sleep(plan.settle)
      const [idle, server] = await charged(stage, contestant, () => queue.run(FILE, 'idle', plan))
      const drained = queue.run(FILE, 'drain', plan)
      await holder.run(FILE, 'give')
      const { all, ms, done } = await drained
      return {
        idle: {
          idleServerCpu: server.cpu / (idle.ms * 10),
          idleCpu: idle.cpu / (idle.ms * 10),
          idleRequests: idle.requests / (idle.ms / 1000),
          drainMs: all ? ms : NaN,
          through: done,
        },
      }
    } finally {
      await Promise.all([holder.close(), queue.close()])
    }
  },
}

let held
let done = 0
let all = Promise.resolve()

export const steps = {
  async take(session, { name }) {
    const lock = session.lock(name)
    held = { lock, lease: await lock.acquire() }
  },
  give: () => held.lock.release(held.lease),
  async queue(session, { name }) {
    const { locks } = await session.clients(CLIENTS)
    const turn = async (lock) => {
      await lock.release(await lock.acquire())
      done++
    }
    all = Promise.all(locks(name).map(turn))
  },
  idle: (_session, { ms }) => measured(() => sleep(ms)),
  drain: (_session, { drain }) => measured(async () => ({ all: await within(drain, all), done })),
}
