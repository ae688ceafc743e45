// A lock server in a process of its own, to be killed. Says on its standard output where it listens.
import { startServer } from '../../dist/server/index.js'

const [listen, state] = process.argv.slice(2)
const server = await startServer({ listen, state })
process.send({ url: server.url, startsIn: server.startsIn })
await server.ready
process.send({ ready: true })
process.on('disconnect', () => process.exit())
