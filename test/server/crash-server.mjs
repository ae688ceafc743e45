// A lock server in a process of its own, to be killed or, by SIGTERM, stopped. Tells its parent where it listens.
import { startServer } from '../../dist/server/index.js'

const [listen, state] = process.argv.slice(2)
const server = await startServer({ listen, state })
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => void server.close().then(() => process.exit()))
process.send({ url: server.url, startsIn: server.startsIn })
await server.ready
if (process.connected) process.send({ ready: true })
