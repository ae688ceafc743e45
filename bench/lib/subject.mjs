// A measured process. It is one library with one store and does what it is told; everything it says is a number.
import { Session } from 'node:inspector/promises'

import { loadContestant } from '../contestants/load.mjs'

let session
let inspector

const OPERATIONS = {
  async open({ file, id, endpoint }) {
    const entry = await loadContestant(file, id)
    session = await entry.open(endpoint)
  },
  async run({ workload, step, params }) {
    const { steps } = await import(`../workloads/${workload}`)
    return await steps[step](session, params)
  },
  async startProfile() {
    inspector = new Session()
    inspector.connect()
    await inspector.post('Profiler.enable')
    await inspector.post('Profiler.setSamplingInterval', { interval: 200 })
    await inspector.post('Profiler.start')
  },
  async stopProfile() {
    const { profile } = await inspector.post('Profiler.stop')
    inspector.disconnect()
    return profile
  },
  async close() {
    await session?.close()
    session = undefined
  },
}

process.on('message', ({ number, operation, args }) => {
  OPERATIONS[operation](args).then(
    (result) => process.send({ number, result }),
    (error) =>
      process.send({ number, error: { message: String(error?.message ?? error), stack: error?.stack } }),
  )
})
process.on('disconnect', () => process.exit())
// A library that throws from a timer would otherwise end the round for all; the count of errors tells it.
process.on('unhandledRejection', (error) => process.send({ stray: String(error?.message ?? error) }))
process.on('uncaughtException', (error) => process.send({ stray: String(error?.message ?? error) }))
