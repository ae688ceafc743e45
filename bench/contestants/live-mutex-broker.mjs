// live-mutex's server, in a process of its own so that its CPU is not taken for a client's. Ends with its parent.
import { createRequire } from 'node:module'

const { Broker } = createRequire(import.meta.url)('live-mutex')
const broker = await new Broker({ host: '127.0.0.1', port: Number(process.argv[2]) }).ensure()
// A client that goes away in the middle of a write is expected here.
broker.emitter.on('warning', () => {})
process.on('disconnect', () => process.exit())
process.on('message', () => process.send({ cpu: process.cpuUsage() }))
process.send('ready')
