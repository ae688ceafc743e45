import { readlinkSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'

import type { ListenAt } from './listen.ts'

/**
 * Where a server at this address keeps its state: the same place after every restart, however the address is written.
 * `localhost` and `127.0.0.1` are one, and `0.0.0.0` takes in every other, so only the port counts; two servers with one
 * port at different addresses need state files of their own, and are told so.
 */
export function defaultStatePath(at: ListenAt): string | null {
  // A port of the system's choosing is another one next time: nobody comes back to it with an old lease.
  if (at.kind === 'tcp' && at.port === 0) return null
  const folder = process.env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state')
  const name = at.kind === 'tcp' ? `port-${at.port}` : realOf(at.path)
  return join(folder, 'holdfast', `${encodeURIComponent(name)}.json`)
}

/** The folder is resolved; the socket itself may not be there yet. */
function realOf(path: string): string {
  try {
    return join(realpathSync(dirname(path)), basename(path))
  } catch {
    return path
  }
}

const MOST_LINKS = 40

/**
 * The file that a link leads to, whether or not it is there yet. The next write would put a file in the link's place, and
 * what was promised would stand beside the disk that it was meant for.
 */
export function behindLinks(path: string): string {
  let at = path
  for (let links = 0; links < MOST_LINKS; links++) {
    try {
      at = resolve(realpathSync(dirname(at)), readlinkSync(at))
    } catch {
      // No link, or nothing there yet.
      return at
    }
  }
  return path
}
