import { existsSync, lstatSync, mkdirSync, readdirSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fitsSocket } from '../../stores/holdfast/url.ts'
import { CommandError, EXIT } from '../exit.ts'

const SOCKET = /^([0-9a-f]{16})\.sock$/

/** Where this user's keepers listen: a folder that nobody else can enter, so that a lease's id need not be a secret. */
export function keeperFolder(): string {
  const { XDG_RUNTIME_DIR: runtime } = process.env
  const user = process.getuid?.() ?? 0
  const folder = runtime ? join(runtime, 'holdfast') : join(tmpdir(), `holdfast-${user}`)
  make(folder)
  // In a folder for everybody, somebody else may have been there first. lstat: not even by a link.
  const stat = lstatSync(folder)
  if (!stat.isDirectory() || stat.uid !== user || (stat.mode & 0o077) !== 0) {
    throw new CommandError(
      `${folder} must be a folder of yours that nobody else can enter (mode 700).`,
      EXIT.system,
    )
  }
  return folder
}

function make(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return
    // With `recursive`, Node tries for ever in a folder where nothing can be made (/proc).
    if (code !== 'ENOENT' || existsSync(dirname(folder))) throw error
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  }
}

export function socketOf(lease: string): string {
  const folder = keeperFolder()
  const socket = join(folder, `${lease}.sock`)
  if (fitsSocket(socket)) return socket
  // Cut off, it would be the socket of other leases, too.
  throw new CommandError(
    `${folder} has too long a name for sockets: set XDG_RUNTIME_DIR or TMPDIR to a shorter one.`,
    EXIT.system,
  )
}

/** The leases that have a socket. The keeper of one may have been killed. */
export function leasesHere(): readonly string[] {
  return readdirSync(keeperFolder()).flatMap((file) => SOCKET.exec(file)?.[1] ?? [])
}

export function isLeaseId(text: string): boolean {
  return SOCKET.test(`${text}.sock`)
}

export function forget(lease: string): void {
  try {
    unlinkSync(socketOf(lease))
  } catch {
    // Its keeper was quicker.
  }
}
