import { sleep } from '../lib/clock.mjs'

const FILE = 'w11-footprint.mjs'
const LEASES = { memory: 100_000, redis: 10_000 }
const WAITERS = 10_000
const AT_ONCE = 500
const MB = 2 ** 20

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w11',
  title: 'Memory of the client for each lease and each waiter',
  about: 'What is still in use after a full garbage collection, divided by how many there are.',
  stores: ['memory', 'redis'],
  plans: {
    full: { rounds: 1, ms: 0, warmUp: 0 },
    quick: { rounds: 1, ms: 0, warmUp: 0, stores: [] },
  },
  variants: (store) => [
    { id: 'leases', label: `${LEASES[store].toLocaleString('en')} leases` },
    { id: 'waiters', label: `${WAITERS.toLocaleString('en')} waiters for one name` },
  ],
  takes: ({ waitingOnly, secondary, family, role }) =>
    !waitingOnly && !secondary && family !== 'proper-lockfile' && role !== 'limit',
  quickTakes: ({ role, family }) => role === 'ours' || family === 'redlock' || family === 'async-mutex',
  headline: 'bytesEach',
  columns: ['bytesEach', 'heapTotalMb', 'rss', 'errors'],
  async round(stage, contestant) {
    const measure = async (step, count) => {
      const [subject] = await stage.crew(contestant, 1, ['--expose-gc'])
      try {
        return await subject.run(FILE, step, { name: stage.name(), count })
      } finally {
        await subject.close()
      }
    }
    return {
      leases: await measure('leases', LEASES[contestant.store]),
      waiters: await measure('waiters', WAITERS),
    }
  },
}

const kept = []

/** Twice, with a pause: the first collection lets finalizers and pending callbacks run, the second takes what they left. */
async function inUse() {
  global.gc()
  await sleep(50)
  global.gc()
  const { heapUsed, external, rss } = process.memoryUsage()
  return { bytes: heapUsed + external, rss }
}

async function grownBy(count, fill) {
  const before = await inUse()
  const errors = await fill()
  const after = await inUse()
  return {
    bytesEach: (after.bytes - before.bytes) / count,
    heapTotalMb: (after.bytes - before.bytes) / MB,
    rss: after.rss / MB,
    errors,
  }
}

export const steps = {
  leases: (session, { name, count }) =>
    grownBy(count, async () => {
      let errors = 0
      for (let first = 0; first < count; first += AT_ONCE) {
        const take = async (_, offset) => {
          const lock = session.lock(`${name}:${first + offset}`)
          // What a user has to keep in order to release: what acquire gave, or else the lock itself.
          kept.push((await lock.acquire()) ?? lock)
        }
        const portion = Array.from({ length: Math.min(AT_ONCE, count - first) }, take)
        errors += (await Promise.allSettled(portion)).filter(({ status }) => status === 'rejected').length
      }
      return errors
    }),
  async waiters(session, { name, count }) {
    kept.push(await session.lock(name).acquire())
    return grownBy(count, async () => {
      for (let waiter = 0; waiter < count; waiter++) {
        const lock = session.lock(name)
        // They are never served; the process ends under them.
        lock.acquire().then(
          () => {},
          () => {},
        )
      }
      await sleep(300)
      return 0
    })
  },
}
