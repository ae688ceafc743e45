// A job on node-cron's schedule, started by every instance and run by one: node examples/schedule-node-cron.mjs [URL]
import cron from 'node-cron'
import { open } from 'holdfast'
import { once } from 'holdfast/recipes'

const holdfast = await open(process.argv[2] ?? 'memory:')
const seconds = new Map()

// Three instances of the service; in real life each is a process of its own.
const tasks = ['Ada', 'Grace', 'Edsger'].map((instance) => {
  const job = once(holdfast, 'report', { atLeast: 1000, run: () => instance })
  return cron.schedule('*/2 * * * * *', async ({ date }) => {
    const second = date.toISOString().slice(0, 19)
    // node-cron logs what a task throws, and goes on.
    const { kind } = await job.tick()
    seconds.set(second, [...(seconds.get(second) ?? []), kind])
    if (done()) finish()
  })
})

const complete = () => [...seconds.values()].filter((kinds) => kinds.length === 3)
const done = () => complete().length === 2
let finish
await new Promise((resolve) => (finish = resolve))
for (const task of tasks) await task.destroy()
for (const kinds of complete()) {
  const ran = kinds.filter((kind) => kind === 'ran').length
  console.log(`${kinds.length} instances started the report, ${ran} ran it`)
}
await holdfast.close()
