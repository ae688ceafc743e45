import { CLOCK_OFFSET, at, breathe, sleep, within } from './clock.mjs'
import { Failures, measured } from './measured.mjs'
import { SectionLog } from './section-log.mjs'
import { FileWitness, LocalWitness } from './witness.mjs'

/** With ~0 work a file witness would be most of the section, so only every 16th section updates it. */
const WITNESS_STRIDE = 16

/** ~0 work is still a section that somebody could break into. */
const SOON = Promise.resolve()

/**
 * How tasks of one process fight for one name.
 * @typedef {object} Fight
 * @property {number} tasks
 * @property {number} [startAt] on the common clock, so that processes start together
 * @property {number} ms
 * @property {number} work milliseconds in the section; 0 means one turn of the microtask queue
 * @property {'any' | 'other'} pick `other`: a task that just had a section asks again only after another task had one
 * @property {number} [stride] sections between readings of the clock
 * @property {string} [witness] a file, when several processes fight
 * @property {number} [drainMs] how long to wait for the last sections
 */

/**
 * @param {(task: number) => import('../contestants/index.mjs').LockHandle} lockOf
 * @param {Fight} fight
 */
export async function contend(
  lockOf,
  { tasks, startAt, ms, work, pick, stride = 1, witness: path, drainMs = 8000 },
) {
  const locks = Array.from({ length: tasks }, (_, task) => lockOf(task))
  const witness = path === undefined ? new LocalWitness() : new FileWitness(path)
  const witnessStride = path !== undefined && work === 0 ? WITNESS_STRIDE : 1
  const counts = new Uint32Array(tasks)
  const waitingSince = new Float64Array(tasks)
  const failures = new Failures()
  const log = new SectionLog()
  let latest = -1
  let wakeLatest
  let steps = 0
  let ended = false

  const othersTurn = () => new Promise((resolve) => (wakeLatest = resolve))
  const wake = () => {
    wakeLatest?.()
    wakeLatest = undefined
  }

  async function run(task, end) {
    const lock = locks[task]
    for (;;) {
      const timed = steps++ % stride === 0
      if (timed && performance.now() >= end) ended = true
      if (ended) return wake()
      if (pick === 'other' && latest === task) await othersTurn()
      const asked = timed ? performance.now() : 0
      waitingSince[task] = asked
      try {
        const held = await lock.acquire()
        const entered = timed ? performance.now() : 0
        waitingSince[task] = 0
        latest = task
        wake()
        const watched = counts[task]++ % witnessStride === 0
        const seen = watched ? witness.read() : 0
        await (work === 0 ? SOON : sleep(work))
        if (watched) witness.write(seen + 1)
        if (timed) log.add(task, asked, entered, performance.now())
        await lock.release(held)
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
    const drained = await within(ms + drainMs, Promise.all(locks.map((_, task) => run(task, end))))
    return { start: start + CLOCK_OFFSET, end: end + CLOCK_OFFSET, drained }
  })
  // Whoever still waits would write into whatever file gets the number next.
  if (cost.drained) witness.close()
  return {
    ...cost,
    counts,
    log: log.toCommonClock(CLOCK_OFFSET),
    waitingSince: waitingSince.map((since) => (since === 0 ? 0 : since + CLOCK_OFFSET)),
    lost: witness.lost,
    updates: witness.updates,
    errors: failures.total,
    failures: failures.toJSON(),
  }
}
