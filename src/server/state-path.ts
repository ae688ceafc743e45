import { homedir } from 'node:os'
import { join } from 'node:path'

import type { ListenAt } from './listen.ts'

/** Where a server at this address keeps its state: the same place after every restart, another for every address. */
export function defaultStatePath(at: ListenAt): string | null {
  // A port of the system's choosing is another one next time: nobody comes back to it with an old lease.
  if (at.kind === 'tcp' && at.port === 0) return null
  const folder = process.env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state')
  const name = at.kind === 'tcp' ? `${at.host}-${at.port}` : at.path
  return join(folder, 'holdfast', `${encodeURIComponent(name)}.json`)
}
