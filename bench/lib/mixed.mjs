import { CLOCK_OFFSET, at, breathe, sleep, within } from './clock.mjs'
import { Failures, measured } from './measured.mjs'
import { randomFrom } from './random.mjs'

/**
 * Readers and a few writers on one name. `locks` gives the two locks; where a library has no read lock both are the
 * same exclusive one, which is what its users have to do.
 */
export async function mixed(locks, { tasks, startAt, ms, work, writes, seed, drainMs = 4000 }) {
  const mine = Array.from({ length: tasks }, () => locks())
  const log = { asked: [], entered: [], left: [], task: [], kind: [] }
  const failures = new Failures()

  async function run(task, end) {
    const random = randomFrom(seed * 1000 + task)
    while (performance.now() < end) {
      const write = random() < writes
      const lock = write ? mine[task].write : mine[task].read
      const asked = performance.now()
      try {
        const held = await lock.acquire()
        const entered = performance.now()
        await sleep(work)
        const left = performance.now()
        await lock.release(held)
        log.asked.push(asked)
        log.entered.push(entered)
        log.left.push(left)
        log.task.push(task)
        log.kind.push(write ? 1 : 0)
      } catch (error) {
        failures.add(error)
        await breathe()
      }
    }
  }

  if (startAt !== undefined) await at(startAt)
  const cost = await measured(async () => {
    const start = performance.now()
    const end = start + ms
    const drained = await within(ms + drainMs, Promise.all(mine.map((_, task) => run(task, end))))
    return { start: start + CLOCK_OFFSET, end: end + CLOCK_OFFSET, drained }
  })
  return { ...cost, log: inOrder(log), errors: failures.total, failures: failures.toJSON() }
}

/** By beginning, on the common clock: readers leave in another order than they came. */
function inOrder(log) {
  const order = log.entered.map((_, place) => place).sort((a, b) => log.entered[a] - log.entered[b])
  const times = (list) => Float64Array.from(order, (place) => list[place] + CLOCK_OFFSET)
  const numbers = (list) => Uint32Array.from(order, (place) => list[place])
  return {
    asked: times(log.asked),
    entered: times(log.entered),
    left: times(log.left),
    task: numbers(log.task),
    kind: numbers(log.kind),
  }
}
