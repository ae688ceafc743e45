import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import { isIP } from 'node:net'
import type { Server } from 'node:net'

import { InvalidArgumentError } from '../core/errors.ts'
import { fitsSocket } from '../stores/holdfast/url.ts'
import { isDeadSocket, lockPath } from './path-lock.ts'

export type ListenAt =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

export const DEFAULT_LISTEN = '127.0.0.1:7420'

/** `host:port`, `[::1]:port`, `unix:/path`. */
export function parseListen(listen: string): ListenAt {
  if (listen.startsWith('unix:')) {
    const path = listen.slice('unix:'.length).replace(/^\/\/(?=\/)/, '')
    if (path.startsWith('/') && !fitsSocket(path))
      throw new InvalidArgumentError('listen: the path of the socket is longer than the system takes', {
        argument: 'listen',
      })
    if (path.startsWith('/')) return { kind: 'unix', path }
  }
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(listen) ?? []
  const host = bracketed ?? plain
  if (host === undefined || Number(port) > 65_535) {
    const message = `listen must be host:port, [ipv6]:port or unix:/path; got "${listen}"`
    throw new InvalidArgumentError(message, { argument: 'listen' })
  }
  return { kind: 'tcp', host, port: Number(port) }
}

/** Only this machine can reach it. */
export function isLocal(at: ListenAt): boolean {
  if (at.kind === 'unix') return true
  if (at.host === 'localhost' || at.host === '::1') return true
  return isIP(at.host) === 4 && at.host.startsWith('127.')
}

/** Without these, whoever can reach the port can take every lock, and read the tokens of those who have one. */
export function assertSafe(
  at: ListenAt,
  { tls, tokens, insecure }: { tls: boolean; tokens: boolean; insecure: boolean },
): void {
  if (isLocal(at) || insecure || (tls && tokens)) return
  const missing = [tls ? '' : 'TLS', tokens ? '' : 'tokens'].filter(Boolean).join(' and ')
  throw new InvalidArgumentError(
    `Refusing to listen beyond this machine without ${missing}. Give both, or say that the network is trusted (insecure).`,
    { argument: 'listen' },
  )
}

/** Resolves when connections are taken. A socket's file belongs to its owner alone. */
export async function listen(server: Server, at: ListenAt): Promise<void> {
  if (at.kind === 'tcp') return bound(server, (done) => server.listen({ ...at, backlog: 4096 }, done))
  // Of several that find the file of a dead server, one takes it away and binds; the others find it alive.
  const lock = await lockPath(at.path)
  try {
    if (lock !== null) await removeStale(at.path)
    await bound(server, (done) => {
      // The file is made inside this call: with the mask it never is open to others, not even for a moment.
      const mask = process.umask(0o177)
      try {
        server.listen({ path: at.path }, done)
      } finally {
        process.umask(mask)
      }
    })
    chmodSync(at.path, 0o600)
  } finally {
    lock?.release()
  }
}

function bound(server: Server, bind: (done: () => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    bind(() => {
      server.off('error', reject)
      resolve()
    })
  })
}

/** A server that was killed leaves its socket's file behind. One that lives is left alone, and binding fails. */
async function removeStale(path: string): Promise<void> {
  try {
    if (!lstatSync(path).isSocket()) return
  } catch {
    return
  }
  if (await isDeadSocket(path)) unlinkSync(path)
}
