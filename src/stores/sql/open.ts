import { Socket } from 'node:net'

import type { Unknown } from '../../core/contract.ts'
import { DriverMissingError, InvalidArgumentError, StoreUnavailableError } from '../../core/errors.ts'
import { redact } from '../../core/redact.ts'

// Taken once: a user's fake timers must not reach locks.
const { setTimeout, clearTimeout } = globalThis

const REACH_MS = 5000

interface Reachable {
  readonly kind: string
  reach(timeout: number): Promise<Unknown | undefined>
  close(): Promise<void>
}

/** The store, once its server has answered; closed again, and an error that tells why, if it does not. */
export async function reached<S extends Reachable>(store: S, url: string): Promise<S> {
  const problem = await store.reach(REACH_MS)
  if (problem === undefined) return store
  await store.close().catch(() => {})
  throw new StoreUnavailableError(
    `The database at ${redact(url)} cannot be used: ${messageOf(problem.cause)}`,
    {
      store: store.kind,
      cause: problem.cause,
      retryable: problem.retryable,
    },
  )
}

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : 'no answer')

/** What a store's URL says beside the driver's own settings. */
interface ParsedUrl {
  /** For the driver. */
  readonly uri: string
  readonly options: { readonly table?: string; readonly schema?: string }
}

/** All options of stores, in small letters. Drivers pass over them: two processes that mean the same lock would not meet. */
const OF_STORES: ReadonlySet<string> = new Set([
  'table',
  'schema',
  'prefix',
  'root',
  'migrate',
  'keepidle',
  'listen',
])

/**
 * Refused by us, because what Node and the drivers say contains the URL, and so the password. `readable`: the same, where a driver
 * takes what is no URL elsewhere.
 */
export function parseUrl(url: string, readable: string = url): ParsedUrl {
  if (!URL.canParse(readable)) return refuse(url, 'cannot be read')
  const options: { table?: string; schema?: string } = {}
  for (const [name, value] of new URL(readable).searchParams) {
    if (!OF_STORES.has(name.toLowerCase())) continue
    if (name !== 'table' && name !== 'schema')
      return refuse(url, `has ${name}: of the store's options a URL can say table and schema`)
    options[name] = value
  }
  // All else stays as it was written: each driver has ways of its own to read what is not encoded as it should be.
  const rest = (query: string): string => query.replaceAll(/(?<=[?&])(table|schema)=[^&]*&?/g, '')
  return { uri: url.replace(/\?[^#]*/, rest), options }
}

function refuse(url: string, problem: string): never {
  throw new InvalidArgumentError(`The URL "${redact(url)}" ${problem}`, { argument: 'url' })
}

/** For a driver that is the user's to install. */
export function notInstalled(store: string, name: string): DriverMissingError {
  return new DriverMissingError(`The ${store} store needs the package ${name}: npm install ${name}`, {
    store,
  })
}

const CLOSE_MS = 2000

/** The sockets of a pool that are open. */
export class OpenSockets {
  private readonly open = new Set<Socket>()

  /** What the driver calls the stream of a connection. */
  add(socket: unknown): void {
    if (!(socket instanceof Socket)) return
    this.open.add(socket)
    socket.once('close', () => this.open.delete(socket))
  }

  keepNoProcessAlive(): void {
    for (const socket of this.open) socket.unref()
  }
}

/**
 * Closes a pool, and does not wait for ever for a connection that does not answer. What goes wrong then is nobody's. The drivers have said
 * goodbye and wait for the server to hang up: one that has fallen silent never does, until TCP gives up after a quarter of an hour.
 */
export function closing(end: () => Promise<unknown>, sockets: OpenSockets): () => Promise<void> {
  return () =>
    new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        sockets.keepNoProcessAlive()
        resolve()
      }
      const timer = setTimeout(done, CLOSE_MS)
      end().then(done, done)
    })
}
