import { load } from '../contestants/dist.mjs'
import { sleep } from '../lib/clock.mjs'
import { measured } from '../lib/measured.mjs'

const FILE = 'w14-stripes.mjs'
const SEGMENTS = [1, 2, 4, 8, 16]
const SELLERS = 64

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w14',
  title: `A stock in segments, ${SELLERS} sellers of one process`,
  about:
    'One ticket a sale, from numbers that take a millisecond to read and one to write. "one lock" is a mutex around ' +
    'the same two; sales a second.',
  stores: ['memory', 'redis'],
  plans: {
    full: { rounds: 2, ms: 300, warmUp: 0 },
    quick: { rounds: 1, ms: 150, warmUp: 0, stores: [] },
  },
  variants: () =>
    SEGMENTS.map((segments) => ({
      id: String(segments),
      label: `${segments} segment${segments > 1 ? 's' : ''}`,
    })),
  takes: ({ family, waitingOnly, secondary }) => family === 'holdfast' && !waitingOnly && !secondary,
  headline: 'rate',
  columns: ['rate', 'timesOneLock', 'wrong'],
  async round(stage, contestant, { ms }) {
    const subject = await stage.subject(contestant)
    const oneLock = await subject.run(FILE, 'oneLock', { name: stage.name(), ms })
    const results = {}
    for (const segments of SEGMENTS) {
      const {
        sold,
        left,
        filled,
        ms: took,
      } = await subject.run(FILE, 'stripes', { name: stage.name(), segments, ms })
      const rate = sold / (took / 1000)
      results[segments] = {
        rate,
        timesOneLock: rate / (oneLock.sold / (oneLock.ms / 1000)),
        wrong: Math.abs(filled - left - sold),
      }
    }
    return results
  },
}

/** A table at a distance: a write of somebody who was overtaken is refused. */
function table(segments) {
  const rows = Array.from({ length: segments }, () => ({ left: 0, fence: 0n }))
  return {
    left: () => rows.reduce((sum, row) => sum + row.left, 0),
    async read(segment) {
      await sleep(1)
      return rows[segment].left
    },
    async write(segment, left, fence) {
      await sleep(1)
      if (fence < rows[segment].fence) return false
      rows[segment] = { left, fence }
    },
  }
}

async function sellUntilLate(ms, sell) {
  let sold = 0
  const end = performance.now() + ms
  const seller = async () => {
    while (performance.now() < end) {
      await sell()
      sold++
    }
  }
  await Promise.all(Array.from({ length: SELLERS }, seller))
  return sold
}

const PLENTY = 100_000

export const steps = {
  async oneLock(session, { name, ms }) {
    const storage = table(1)
    const lock = session.lock(name)
    const sell = async () => {
      const lease = await lock.acquire()
      await storage.write(0, (await storage.read(0)) - 1, 0n)
      await lock.release(lease)
    }
    return measured(async () => ({ sold: await sellUntilLate(ms, sell) }))
  },
  async stripes(session, { name, segments, ms }) {
    const { stripedStock } = await load('recipes/index.js')
    const storage = table(segments)
    const stock = stripedStock(session.holdfast, name, { segments, storage })
    await stock.fill(PLENTY)
    const run = await measured(async () => ({ sold: await sellUntilLate(ms, () => stock.take()) }))
    return { ...run, left: storage.left(), filled: PLENTY }
  },
}
