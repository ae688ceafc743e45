import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('../contestants/live-mutex-broker.mjs', import.meta.url))

/** live-mutex refuses ports from 49152 on, which is where the system hands out free ones. */
async function freePort() {
  for (let port = 21_000 + (process.pid % 9_000); ; port++) {
    const server = createServer()
    const free = await new Promise((resolve) => {
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
    })
    if (free) return port
  }
}

export async function startBroker() {
  const port = await freePort()
  const child = fork(PROGRAM, [String(port)], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  await once(child, 'message')
  const read = async () => {
    child.send('read')
    const [{ cpu }] = await once(child, 'message')
    return { ops: NaN, cpu: cpu.user + cpu.system }
  }
  return {
    port,
    meter: { read, flush: async () => {}, close: () => {} },
    stop: () => child.connected && child.disconnect(),
  }
}
