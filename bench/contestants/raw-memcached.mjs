// The limit on memcached: `add` and `delete`, written by hand onto a socket. No token, no check whose it is.
import './sockets.mjs'

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'

import { TTL } from './settings.mjs'

/** @type {import('./index.mjs').Contestant[]} */
export const rawMemcached = [
  {
    id: 'raw-memcached',
    family: 'raw',
    label: 'raw limit (socket)',
    store: 'memcached',
    role: 'limit',
    config: 'add, delete; written by hand',
    async open({ urls }) {
      const { hostname, port } = new URL(urls.memcached)
      const socket = connect({ host: hostname, port: Number(port), noDelay: true })
      await once(socket, 'connect')
      // One task, one request at a time: whatever comes is the answer to it.
      let answered
      socket.on('data', (data) => answered(data.toString('latin1')))
      const ask = (request) =>
        new Promise((resolve) => {
          answered = resolve
          socket.write(request, 'latin1')
        })
      const seconds = TTL / 1000
      return {
        lock: (name) => ({
          async acquire() {
            const answer = await ask(`add ${name} 0 ${seconds} 36\r\n${randomUUID()}\r\n`)
            if (answer !== 'STORED\r\n') throw new Error('taken')
          },
          release: () => ask(`delete ${name}\r\n`),
        }),
        close: () => socket.destroy(),
      }
    },
  },
]
