// A job on croner's schedule, started by every instance and run by one: node examples/schedule-croner.mjs [URL]
import { Cron } from 'croner'
import { open } from 'holdfast'
import { once } from 'holdfast/recipes'

const holdfast = await open(process.argv[2] ?? 'memory:')
const seconds = new Map()

// Three instances of the service; in real life each is a process of its own.
const schedules = ['Ada', 'Grace', 'Edsger'].map((instance) => {
  const job = once(holdfast, 'report', { atLeast: 1000, run: () => instance })
  const complain = (error) => console.error(`${instance}: ${error.message}`)
  return new Cron('*/2 * * * * *', { catch: complain }, async (self) => {
    const second = String(self.currentRun())
    const { kind } = await job.tick()
    seconds.set(second, [...(seconds.get(second) ?? []), kind])
    if (done()) finish()
  })
})

const complete = () => [...seconds.values()].filter((kinds) => kinds.length === 3)
const done = () => complete().length === 2
let finish
await new Promise((resolve) => (finish = resolve))
for (const schedule of schedules) schedule.stop()
for (const kinds of complete()) {
  const ran = kinds.filter((kind) => kind === 'ran').length
  console.log(`${kinds.length} instances started the report, ${ran} ran it`)
}
await holdfast.close()
