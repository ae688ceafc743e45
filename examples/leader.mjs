// One of several instances leads: node examples/leader.mjs [URL]
import { once } from 'node:events'
import { open } from 'holdfast'
import { leader, leaderOf } from 'holdfast/recipes'

const holdfast = await open(process.argv[2] ?? 'memory:')

// Three instances of a service. Here they live in one process; in earnest each has its own.
const stand = (name, work) =>
  leader(holdfast, 'reports', {
    async onElected(signal, term) {
      console.log(`${name} leads`)
      await work(signal, term)
      console.log(`${name} has put everything away`)
    },
    onError: (error) => console.log(`${name} failed: ${error.message}`),
  })

const untilItIsOver = (signal) => once(signal, 'abort')
const ada = stand('Ada', untilItIsOver)
const grace = stand('Grace', () => {
  throw new Error('no paper')
})
const barbara = stand('Barbara', untilItIsOver)

while (!ada.leading) await new Promise((resolve) => setTimeout(resolve, 10))
console.log('seen from outside:', (await leaderOf(holdfast, 'reports')) !== null)
await ada.stop()
while (!barbara.leading) await new Promise((resolve) => setTimeout(resolve, 10))
console.log('probe:', barbara.health().ok, barbara.state)
await Promise.all([grace.stop(), barbara.stop()])
await holdfast.close()
