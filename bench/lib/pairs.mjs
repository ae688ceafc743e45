import { Failures } from './measured.mjs'

/**
 * One task that acquires and releases until its time is over.
 *
 * `stride` says how often the clock is read: in memory a pair takes less than two readings of the clock, so there
 * only every 64th is timed. What is timed then stands for the rest.
 *
 * @param {import('../contestants/index.mjs').LockHandle} lock
 */
export async function pairs(lock, { ms, stride = 1 }) {
  const failures = new Failures()
  const times = []
  const end = performance.now() + ms
  let done = 0
  for (;;) {
    const began = performance.now()
    if (began >= end) return { done, times, errors: failures.total, failures: failures.toJSON() }
    for (let skipped = 1; skipped < stride; skipped++) {
      await lock.release(await lock.acquire())
      done++
    }
    const timed = stride === 1 ? began : performance.now()
    try {
      await lock.release(await lock.acquire())
      times.push(performance.now() - timed)
      done++
    } catch (error) {
      failures.add(error)
    }
  }
}
