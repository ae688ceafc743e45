import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import { connect, isIP } from 'node:net'
import type { Server } from 'node:net'

import { InvalidArgumentError } from '../core/errors.ts'

export type ListenAt =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

export const DEFAULT_LISTEN = '127.0.0.1:7420'

/** `host:port`, `[::1]:port`, `unix:/path`. */
export function parseListen(listen: string): ListenAt {
  if (listen.startsWith('unix:')) {
    const path = listen.slice('unix:'.length).replace(/^\/\/(?=\/)/, '')
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
  if (at.kind === 'unix') await removeStale(at.path)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    const done = (): void => {
      server.off('error', reject)
      resolve()
    }
    if (at.kind === 'tcp') return void server.listen({ host: at.host, port: at.port, backlog: 4096 }, done)
    // The file is made inside this call: with the mask it never is open to others, not even for a moment.
    const mask = process.umask(0o177)
    try {
      server.listen({ path: at.path }, done)
    } finally {
      process.umask(mask)
    }
  })
  if (at.kind === 'unix') chmodSync(at.path, 0o600)
}

/** A server that was killed leaves its socket's file behind. One that answers is left alone, and binding fails. */
async function removeStale(path: string): Promise<void> {
  try {
    if (!lstatSync(path).isSocket()) return
  } catch {
    return
  }
  const alive = await new Promise<boolean>((resolve) => {
    const probe = connect(path, () => resolve(true))
    probe.on('error', () => resolve(false))
    probe.on('close', () => undefined)
    setTimeout(() => resolve(true), 1000).unref()
  })
  if (!alive) unlinkSync(path)
}
