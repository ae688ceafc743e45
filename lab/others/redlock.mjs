// redlock 5 on five servers, as its README has it: `using`, which extends the lock by itself and tells by a signal when it could not.
import { Redis } from 'ioredis'

import { endpointsOf } from '../../dist/lab/live/index.js'
import { peers } from '../../bench/peers.mjs'
import { labClient } from './adapter.mjs'

/** Its own default. */
const RETRY_DELAY_MS = 200

export async function open({ url, ttl }) {
  const { default: Redlock } = await peers.redlock()
  const clients = endpointsOf(url).map(({ host, port }) => new Redis(port, host))
  for (const client of clients) client.on('error', () => {})
  const redlock = new Redlock(clients)
  const take = (name, waitMs) => {
    const settings = { retryCount: Math.ceil(waitMs / RETRY_DELAY_MS) }
    return new Promise((resolve, reject) => {
      const section = redlock.using([name], ttl, settings, (signal) => {
        let done
        const over = new Promise((settle) => (done = settle))
        const release = async () => {
          done()
          await section
          return signal.aborted ? 'expired' : 'released'
        }
        resolve({ signal, held: () => !signal.aborted, sure: () => !signal.aborted, release })
        return over
      })
      section.catch((error) => (error.name === 'ExecutionError' ? resolve(null) : reject(error)))
    })
  }
  return labClient({ take, close: () => clients.forEach((client) => client.disconnect()) })
}
