// A job on croner's schedule, started by every instance and run by one: node examples/schedule-croner.mjs [URL]
import { Cron } from 'croner'
import { open } from 'holdfast'
import { once } from 'holdfast/recipes'

const holdfast = await open(process.argv[2] ?? 'memory:')
let starts = 0
let finish
const finished = new Promise((resolve) => (finish = resolve))

// Three instances of the service; in real life each is a process of its own.
const schedules = ['Ada', 'Grace', 'Edsger'].map((instance) => {
  const job = once(holdfast, 'report', { atLeast: 1000, run: () => console.log('the report') })
  const complain = (error) => console.error(`${instance}: ${error.message}`)
  return new Cron('*/2 * * * * *', { catch: complain }, async () => {
    await job.tick()
    if (++starts === 6) finish()
  })
})

await finished
for (const schedule of schedules) schedule.stop()
await holdfast.close()
