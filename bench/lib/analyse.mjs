// What the logs of a fight say. Runs in the process that counts, after everything that is measured has ended.
import { fairness, tail } from './stats.mjs'

/** Clocks of two processes differ by less; sections that overlap by more were really in there together. */
const CLOCK_TOLERANCE_MS = 0.005

/** All sections of all processes in the order of their beginning. Each log is in that order already. */
export function merged(logs) {
  const places = logs.map(() => 0)
  const order = []
  for (;;) {
    let first = -1
    for (let one = 0; one < logs.length; one++) {
      const { entered } = logs[one]
      if (places[one] >= entered.length) continue
      if (first === -1 || entered[places[one]] < logs[first].entered[places[first]]) first = one
    }
    if (first === -1) return order
    const place = places[first]++
    const { asked, entered, left, task, kind } = logs[first]
    order.push({
      process: first,
      task: task[place],
      asked: asked[place],
      entered: entered[place],
      left: left[place],
      write: kind === undefined || kind[place] === 1,
    })
  }
}

/** Sections that began while another was still inside; readers may share with readers. */
export function overlaps(sections) {
  let count = 0
  let anyLeft = -Infinity
  let writerLeft = -Infinity
  for (const { entered, left, write } of sections) {
    if (entered < (write ? anyLeft : writerLeft) - CLOCK_TOLERANCE_MS) count++
    anyLeft = Math.max(anyLeft, left)
    if (write) writerLeft = Math.max(writerLeft, left)
  }
  return count
}

/** Share of sections that did not go to whoever had the one before. */
export function switches(sections, who) {
  if (sections.length < 2) return NaN
  let changed = 0
  for (let at = 1; at < sections.length; at++) if (who(sections[at]) !== who(sections[at - 1])) changed++
  return changed / (sections.length - 1)
}

const sum = (values) => values.reduce((total, value) => total + value, 0)

/**
 * @param {any[]} runs what `contend` returned in each process
 * @param {{ witnessed?: number }} [known] the value of the witness file at the end
 */
export function fightMetrics(runs, { witnessed } = {}) {
  const start = Math.min(...runs.map((run) => run.start))
  const end = Math.max(...runs.map((run) => run.end))
  const tasks = sum(runs.map((run) => run.counts.length))
  const all = merged(runs.map((run) => run.log))
  const inTime = all.filter(({ entered }) => entered < end)
  const everything = sum(runs.map((run) => sum([...run.counts])))
  // When only some sections were timed, all of them are taken and the little that came after the end with them.
  const timed = all.length === everything
  const seconds = (timed ? end - start : Math.max(...runs.map((run) => run.ms))) / 1000
  const rate = (timed ? inTime.length : everything) / seconds
  // A task that still waits has waited at least this long: leaving it out would make starvation look like speed.
  const unserved = runs.flatMap((run) => [...run.waitingSince].filter((since) => since > 0 && since < end))
  const waits = tail([
    ...inTime.map(({ asked, entered }) => entered - asked),
    ...unserved.map((since) => end - since),
  ])
  const perTask = taskCounts(runs, inTime, timed)
  const perProcess = perTask.map((counts) => sum(counts))
  const updates = sum(runs.map((run) => run.updates))
  return {
    rate,
    sections: everything,
    p50: waits.p50,
    p99: waits.p99,
    max: waits.max,
    // How many times its fair share of the time the unluckiest task waited.
    waitShare: waits.max / ((tasks / rate) * 1000),
    switchProcess: runs.length > 1 ? switches(inTime, ({ process }) => process) : NaN,
    switchTask: timed ? switches(inTime, ({ process, task }) => process * 100_000 + task) : NaN,
    fairProcess: runs.length > 1 ? fairness(perProcess) : NaN,
    fairTask: fairness(perTask.flat()),
    starved: perTask.flat().filter((count) => count === 0).length,
    overlaps: timed ? overlaps(all) : 0,
    lost: witnessed === undefined ? sum(runs.map((run) => run.lost)) : updates - witnessed,
    errors: sum(runs.map((run) => run.errors)),
    requests: sum(runs.map((run) => run.requests)) / everything,
    clientCpu: sum(runs.map((run) => run.cpu)) / everything,
  }
}

function taskCounts(runs, inTime, timed) {
  if (!timed) return runs.map((run) => [...run.counts])
  const counts = runs.map((run) => Array.from(run.counts, () => 0))
  for (const { process, task } of inTime) counts[process][task]++
  return counts
}
