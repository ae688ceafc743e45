import { connect } from 'node:net'
import type { PostgresClient } from './client.ts'

// Taken once: a user's fake timers must not reach locks.
const { setTimeout } = globalThis

const CANCEL_REQUEST = 80877102
const PATIENCE_MS = 2000
const LOOKS = 3
const LOOK_MS = 200

interface Addressed {
  readonly host?: unknown
  readonly port?: unknown
  readonly processID?: unknown
  readonly secretKey?: unknown
}

/**
 * Asks the server to stop what it does for a client that nobody listens to any more. A connection that is only closed lives
 * on there for as long as its statement waits for a row, with all it has locked. By a message of the protocol rather than
 * `pg_cancel_backend`: a pooler in between has numbers of its own, and passes this on. What goes wrong with it is nobody's.
 */
export function cancel(client: PostgresClient, looks = 0): void {
  const { host, port, processID, secretKey } = client as Addressed
  if (typeof host !== 'string' || typeof port !== 'number') return
  if (typeof processID !== 'number' || typeof secretKey !== 'number') return
  const bytes = Buffer.alloc(16)
  bytes.writeInt32BE(16, 0)
  bytes.writeInt32BE(CANCEL_REQUEST, 4)
  bytes.writeInt32BE(processID, 8)
  bytes.writeInt32BE(secretKey, 12)
  const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host)
  socket.on('error', () => {})
  socket.setTimeout(PATIENCE_MS, () => socket.destroy())
  socket.unref()
  socket.end(bytes)
  // The server may not have come to the statement yet; a connection that has ended by then has no such number any more.
  if (looks < LOOKS) setTimeout(() => cancel(client, looks + 1), LOOK_MS * 2 ** looks).unref()
}
