import { connect } from 'node:net'
import type { OnReadOpts } from 'node:net'
import type { ConnectionOptions } from 'node:tls'

import type { Unknown } from '../../core/contract.ts'
import { UnsupportedError } from '../../core/errors.ts'
import { isUnknown, unknown, unknownForGood } from '../../core/unknown.ts'
import type { Address } from './url.ts'
import { plainError, refused } from './failure.ts'
import type { Keys } from './keys.ts'
import { Connection } from './connection.ts'
import type { Inbox } from './connection.ts'
import { isError } from './protocol.ts'
import type { Reply } from './protocol.ts'
import type { ServerClock } from './server-clock.ts'

// Taken once: a user's fake timers must not move a lease.
const { performance } = globalThis

export interface DialOptions {
  readonly address: Address
  readonly user: string | undefined
  readonly password: string | undefined
  readonly tls: ConnectionOptions | undefined
  readonly keys: Keys
  readonly clock: ServerClock
}

/** The longest that an item may be asked to live, 30 days, is read as a date beyond; a little less. */
const CLOCK_LIFE_S = 2_500_000
/** A connection attempt that nobody waits for any more is stopped from outside; this bounds one request of it. */
const STEP_MS = 60_000

const READ_BYTES = 16_384

export interface Dialling {
  readonly connection: Promise<Connection | Unknown>
  readonly stop: (cause: Error) => void
}

/** Connects, proves who we are if the server wants that, and sees what it can do. `stop` ends the attempt. */
export function dial(options: DialOptions, onDeath: () => void): Dialling {
  try {
    return begin(options, onDeath)
  } catch (error) {
    // Node refuses the options for TLS: a certificate that is none, for one.
    return { connection: Promise.resolve(unknownForGood(plainError(error))), stop: () => undefined }
  }
}

function begin(options: DialOptions, onDeath: () => void): Dialling {
  const { address } = options
  const inbox: Inbox = { deliver: () => undefined }
  const where = {
    ...('path' in address ? { path: address.path } : { host: address.host, port: address.port }),
    onread: reading(inbox),
  }
  const socket =
    options.tls === undefined
      ? connect(where)
      : // Not imported: it takes as long to load as everything else here.
        process.getBuiltinModule('node:tls').connect(tlsOptions(options.tls, where))
  socket.setNoDelay(true)
  // A peer that vanished while nothing is asked is noticed by the system.
  socket.setKeepAlive(true, 30_000)
  let stopped: ((cause: Error) => void) | null = null
  const connection = new Promise<Connection | Unknown>((resolve) => {
    stopped = (cause) => {
      socket.destroy()
      resolve(unknown(cause))
    }
    socket.once('error', (error) => resolve(unknown(plainError(error))))
    socket.once('close', () => resolve(unknown(new Error('memcached closed the connection'))))
    socket.once(options.tls === undefined ? 'connect' : 'secureConnect', () => {
      greet(new Connection(socket, inbox, onDeath), options).then(resolve, (error: unknown) =>
        resolve(unknown(plainError(error))),
      )
    })
  })
  return { connection, stop: (cause) => stopped?.(cause) }
}

function reading(inbox: Inbox): OnReadOpts {
  return {
    buffer: Buffer.allocUnsafe(READ_BYTES),
    callback: (bytes, buffer) => {
      inbox.deliver((buffer as Buffer).toString('latin1', 0, bytes))
      return true
    },
  }
}

function tlsOptions(given: ConnectionOptions, where: ConnectionOptions): ConnectionOptions {
  const { host } = where
  // Certificates are checked against the host's name; an address has none to ask for by SNI.
  const named = host !== undefined && !/^[\d.]+$|:/.test(host)
  return { ...(named ? { servername: host } : {}), ...given, ...where }
}

async function greet(connection: Connection, options: DialOptions): Promise<Connection | Unknown> {
  const checked = await introduce(connection, options)
  if (checked === undefined) return connection
  connection.end(new Error('the connection was given up'))
  return checked
}

/** Undefined: the server will do. */
async function introduce(connection: Connection, options: DialOptions): Promise<Unknown | undefined> {
  // Alone: a server that wants a password first answers one command and drops what came with it.
  const hello = await connection.askPlain('version\r\n', 1, STEP_MS)
  if (isUnknown(hello)) return hello
  const line = hello[0]?.line ?? ''
  if (line.startsWith('CLIENT_ERROR unauthenticated')) {
    // Only now: a server that wants no password would store it like any other value.
    const refusal = await authenticate(connection, options)
    if (refusal !== undefined) return refusal
  } else if (/^ERROR Too many open connections/i.test(line)) {
    return unknown(new Error(NO_CONNECTION_LEFT))
  } else if (!line.startsWith('VERSION ')) {
    return unknownForGood(new Error('what answers there does not speak the memcached protocol'))
  }
  return examine(connection, options)
}

async function authenticate(
  connection: Connection,
  { user, password }: DialOptions,
): Promise<Unknown | undefined> {
  if (user === undefined || password === undefined) {
    return unknownForGood(new Error('memcached wants a user and a password (it runs with -Y)'))
  }
  const credentials = Buffer.from(`${user} ${password}`, 'utf8').toString('latin1')
  const answer = await connection.askPlain(
    `set auth 0 0 ${credentials.length}\r\n${credentials}\r\n`,
    1,
    STEP_MS,
  )
  if (isUnknown(answer)) return answer
  const accepted = answer[0]?.line === 'STORED'
  return accepted ? undefined : unknownForGood(new Error('memcached refused the user or the password'))
}

async function examine(connection: Connection, { keys, clock }: DialOptions): Promise<Unknown | undefined> {
  const identity = Math.floor(Math.random() * 2 ** 52)
  const tellTime = `ma ${keys.clock} N${CLOCK_LIFE_S} J${identity} D0 c t v`
  const answer = await connection.askPlain(`mg ${keys.probe} E1\r\n${tellTime}\r\n`, 2, STEP_MS)
  if (isUnknown(answer)) return answer
  const [ownCas, time] = answer as [Reply, Reply]
  if (/out of memory/i.test(time.line)) return refused(time)
  if (time.code !== 'VA') return unfit(TOO_OLD)
  if (time.flag('c') === '0') return unfit(NO_CAS)
  connection.ownCas = !isError(ownCas)
  clock.identify(time.value ?? '', Number(time.flag('t')), performance.now())
  return undefined
}

const TOO_OLD =
  'This memcached is too old, or something in front of one: the store needs the meta commands of 1.6 (mg, ms, md, ma).'
const NO_CONNECTION_LEFT = 'memcached has no connection left (ERROR Too many open connections). Raise -c.'
const NO_CAS =
  'memcached runs with -C (CAS disabled), so nobody could release a lock without the risk of deleting another’s. Start it without -C.'

function unfit(message: string): Unknown {
  return unknownForGood(new UnsupportedError(message, { store: 'memcached' }))
}
