import { createHash, randomBytes, randomInt } from 'node:crypto'
import { mkdirSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** What the shortest of the systems takes for a socket's path. */
const LONGEST_PATH = 100
const ATTEMPTS = 4
const PROBE_MS = 1000

export interface PathLock {
  release(): void
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
  const { folder, prefix } = placeOf(path)
  for (let attempt = 1; ; attempt++) {
    const mine = `${prefix}${randomBytes(6).toString('hex')}`
    const server = await occupy(join(folder, mine))
    const release = (): void => void server.close()
    if (!(await others(folder, prefix, mine))) return { release }
    release()
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

/** The same for every way to write the path. */
function placeOf(path: string): { folder: string; prefix: string } {
  const real = join(realpathSync(dirname(path)), basename(path))
  if (Buffer.byteLength(real) + '.lock-'.length + 12 <= LONGEST_PATH)
    return { folder: dirname(real), prefix: `${basename(real)}.lock-` }
  const digest = createHash('sha256').update(real).digest('hex').slice(0, 24)
  return { folder: tmpdir(), prefix: `holdfast-${digest}.lock-` }
}

function occupy(place: string): Promise<Server> {
  const server = createServer((socket) => void socket.destroy())
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    const mask = process.umask(0o177)
    try {
      server.listen({ path: place }, () => {
        server.unref()
        resolve(server)
      })
    } finally {
      process.umask(mask)
    }
  })
}
