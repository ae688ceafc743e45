// A job on node-cron's schedule, started by every instance and run by one: node examples/schedule-node-cron.mjs [URL]
import cron from 'node-cron'
import { open } from 'holdfast'
import { once } from 'holdfast/recipes'

const holdfast = await open(process.argv[2] ?? 'memory:')
let starts = 0
let finish
const finished = new Promise((resolve) => (finish = resolve))

// Three instances of the service; in real life each is a process of its own.
const tasks = ['Ada', 'Grace', 'Edsger'].map(() => {
  const job = once(holdfast, 'report', { atLeast: 1000, run: () => console.log('the report') })
  return cron.schedule('*/2 * * * * *', async () => {
    // node-cron logs what a task throws, and goes on.
    await job.tick()
    if (++starts === 6) finish()
  })
})

await finished
for (const task of tasks) await task.destroy()
await holdfast.close()
