import { createHash, randomBytes, randomInt } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** What the shortest of the systems takes for a socket's path. */
const LONGEST_PATH = 100
const LONGEST_NAME = 50
/** Bytes, by which those of one path differ. */
const RANDOM = 6
const ATTEMPTS = 4
const PROBE_MS = 1000

export interface PathLock {
  release(): void
}

interface Place {
  readonly folder: string
  readonly prefix: string
  /** When nothing is done there any more. */
  readonly leave: () => void
}

/**
 * Holds a path for one server, as long as its process lives; null if another has it. Node has no file locks, and a file
 * with a process number in it means nothing in another container. That somebody listens at a socket is known to the
 * system itself, and ends with the process. So everybody first listens at a socket of their own beside the path, and then
 * looks for others: of two, the later one always sees the earlier. A dead socket never comes to life again, and anybody
 * may clear it away.
 */
export async function lockPath(path: string): Promise<PathLock | null> {
  // Sockets are no files there.
  if (process.platform === 'win32') return { release: () => undefined }
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const place = placeOf(path)
  const lock = await lockAt(place).catch((error: unknown) => {
    place.leave()
    throw error
  })
  if (lock === null) place.leave()
  return lock
}

async function lockAt({ folder, prefix, leave }: Place): Promise<PathLock | null> {
  for (let attempt = 1; ; attempt++) {
    const mine = `${prefix}${randomBytes(RANDOM).toString('hex')}`
    const server = await occupy(join(folder, mine))
    // A socket is removed by the name that it was made by.
    if (!(await others(folder, prefix, mine))) return { release: () => void server.close(leave) }
    server.close()
    if (attempt === ATTEMPTS) return null
    // Two who came at the same moment have both stepped back.
    await sleep(randomInt(20, 100) * attempt)
  }
}

/** Whether nobody listens at a socket. Only a refusal proves it: one with a full backlog answers otherwise, and lives. */
export function isDeadSocket(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path)
    const end = (dead: boolean): void => {
      clearTimeout(timer)
      probe.destroy()
      resolve(dead)
    }
    const timer = setTimeout(() => end(false), PROBE_MS)
    probe.once('connect', () => end(false))
    probe.on('error', ({ code }: NodeJS.ErrnoException) => end(code === 'ECONNREFUSED' || code === 'ENOENT'))
  })
}

async function others(folder: string, prefix: string, mine: string): Promise<boolean> {
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(prefix) || name === mine) continue
    if (!(await isDeadSocket(join(folder, name)))) return true
    rmSync(join(folder, name), { force: true })
  }
  return false
}

/**
 * The same for every way to write the path, and for every path that leads to the folder: in another container it may be a
 * longer one. So the sockets' names go by the file's alone.
 */
function placeOf(path: string): Place {
  const real = join(realpathSync(dirname(path)), basename(path))
  const [folder, name] = [dirname(real), basename(real)]
  const prefix =
    Buffer.byteLength(name) <= LONGEST_NAME ? `${name}.lock-` : `.holdfast-${digestOf(name)}.lock-`
  if (Buffer.byteLength(join(folder, prefix)) + RANDOM * 2 <= LONGEST_PATH)
    return { folder, prefix, leave: () => undefined }
  const short = shortNameOf(folder)
  if (short !== null) return { ...short, prefix }
  return { folder: tmpdir(), prefix: `holdfast-${digestOf(real)}.lock-`, leave: () => undefined }
}

/**
 * Linux has one for a folder that is open. In a folder that is everybody's, like the system's temporary one, others could
 * listen at our sockets, and a server that has another one (a container, systemd's `PrivateTmp`) would not see them.
 */
function shortNameOf(path: string): Omit<Place, 'prefix'> | null {
  if (process.platform !== 'linux') return null
  const open = openSync(path, 'r')
  const leave = (): void => closeSync(open)
  const folder = `/proc/self/fd/${open}`
  if (existsSync(folder)) return { folder, leave }
  leave()
  return null
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 24)

function occupy(place: string): Promise<Server> {
  const server = createServer((socket) => void socket.destroy())
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    const mask = process.umask(0o177)
    try {
      // By this process itself: in a cluster's worker the first process would listen, and go on when the worker is gone.
      server.listen({ path: place, exclusive: true }, () => {
        server.unref()
        resolve(server)
      })
    } finally {
      process.umask(mask)
    }
  })
}
