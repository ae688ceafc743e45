// Loopback ports below the range from which systems take the source ports of outgoing connections (Linux: 32768
// and up). A port from that range can be taken by any connection while its server is down for a restart.
import { createServer } from 'node:net'

const FIRST = 12_000
const COUNT = 10_000

/** @param {{ alsoPlus?: number }} [options] `alsoPlus`: the port that many above has to be free as well */
export async function freePort({ alsoPlus = 0 } = {}) {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = FIRST + Math.floor(Math.random() * COUNT)
    const wanted = alsoPlus === 0 ? [port] : [port, port + alsoPlus]
    const free = await Promise.all(wanted.map(isFree))
    if (free.every(Boolean)) return port
  }
  throw new Error(`no free port on the loopback between ${FIRST} and ${FIRST + COUNT}`)
}

export function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
