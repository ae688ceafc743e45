// A scheduled job that all instances start and one runs: node examples/once-per-period.mjs [URL]
import { setTimeout as sleep } from 'node:timers/promises'
import { open } from 'holdfast'
import { once } from 'holdfast/recipes'

const holdfast = await open(process.argv[2] ?? 'memory:')
let reports = 0

// Three instances. `every` is the period of their timers, here a second.
const instances = Array.from({ length: 3 }, () =>
  once(holdfast, 'report', {
    every: 1000,
    run: async () => {
      await sleep(50)
      return `(report ${++reports})`
    },
  }),
)

// With a scheduler it is one line: new Cron('0 3 * * *', () => job.tick()), or cron.schedule('0 3 * * *', () => job.tick()).
const allTick = async (when) => {
  const outcomes = await Promise.all(instances.map((job) => job.tick()))
  const results = outcomes.filter(({ kind }) => kind === 'ran').map(({ result }) => result)
  console.log(`${when}: ${results.length} ran`, ...results)
}

await allTick('at three')
await sleep(100)
await allTick('at three by clocks that are behind')
await sleep(900)
await allTick('at four')
await holdfast.close()
