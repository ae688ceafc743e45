// A lock server in a process of its own, with little memory, to be attacked. Options come as JSON; `slow` puts it in
// front of a store that takes a moment for everything.
import { startServer } from '../../../dist/server/index.js'
import { memoryStore } from '../../../dist/stores/memory/index.js'

const { slow = 0, ...options } = JSON.parse(process.argv[2] ?? '{}')

function slowed(store) {
  const wrapped = { kind: 'memory', capabilities: store.capabilities, close: () => store.close() }
  for (const method of ['claim', 'renew', 'release', 'withdraw', 'watch', 'inspect', 'list']) {
    wrapped[method] = async (...given) => {
      await new Promise((resolve) => void setTimeout(resolve, slow))
      return store[method](...given)
    }
  }
  return wrapped
}

const server = await startServer({
  listen: '127.0.0.1:0',
  ...(slow > 0 ? { store: slowed(memoryStore()) } : {}),
  ...options,
})
process.send({ address: server.address, url: server.url })
process.on('message', (wish) => {
  if (wish === 'memory') process.send({ rss: process.memoryUsage().rss })
  else void server.close({ grace: 50 }).then(() => process.disconnect())
})
process.on('disconnect', () => process.exit())
