import { closeSync, constants, fstatSync, openSync, statfsSync, writeSync } from 'node:fs'

/** Characters that are kept while the file cannot be written. */
export const KEPT: number = 1024 * 1024

/** A pipe (a FIFO, `/dev/stdout` in a container) that is full, or that nobody reads, is a file that cannot be written now. */
const { O_APPEND, O_CREAT, O_WRONLY, O_NONBLOCK } = constants
const ADDING = O_APPEND | O_CREAT | O_WRONLY | O_NONBLOCK

/**
 * A file that lines are added to. Writing waits for nobody: what the system took is in the file, what it did not take is
 * tried again with the next line, from the very byte at which it stopped.
 */
export class LineFile {
  private readonly path: string
  private readonly hasRoom: (path: string) => boolean
  private fd: number | null = null
  private waiting: Buffer = Buffer.alloc(0)
  private fresh = ''

  constructor(path: string, hasRoom: (path: string) => boolean = diskHasRoom) {
    this.path = path
    this.hasRoom = hasRoom
  }

  /** False when there is no room for it: the file could not be written for too long. */
  add(line: string): boolean {
    if (this.waiting.length + this.fresh.length > KEPT) return false
    this.fresh += line
    return true
  }

  /** Null when everything is in the file, and the next line seems to find room. */
  flush(): Error | null {
    try {
      this.leaveDeleted()
      this.fd ??= openSync(this.path, ADDING, 0o600)
      if (this.waiting.length === 0 && this.fresh === '')
        return this.hasRoom(this.path) ? null : new Error(`There is no room on the disk of ${this.path}`)
      if (this.fresh !== '') this.waiting = Buffer.concat([this.waiting, Buffer.from(this.fresh)])
      this.fresh = ''
      while (this.waiting.length > 0) this.waiting = this.waiting.subarray(writeSync(this.fd, this.waiting))
      return null
    } catch (error) {
      return error as Error
    }
  }

  /** What is written to a file that has no name any more is gone with it. */
  private leaveDeleted(): void {
    if (this.fd === null || fstatSync(this.fd).nlink > 0) return
    closeSync(this.fd)
    this.fd = null
  }

  /** A file that was moved away is begun anew. Where that fails, the old one is gone on with. */
  reopen(): Error | null {
    this.flush()
    try {
      const fresh = openSync(this.path, ADDING, 0o600)
      if (this.fd !== null) closeSync(this.fd)
      this.fd = fresh
      return this.flush()
    } catch (error) {
      return error as Error
    }
  }

  close(): void {
    this.flush()
    if (this.fd !== null) closeSync(this.fd)
    this.fd = null
  }
}

/** False only where the system says so: quotas and networks have other limits, which the next line meets. */
function diskHasRoom(path: string): boolean {
  try {
    const { blocks, bfree, bavail } = statfsSync(path)
    return blocks === 0 || (process.getuid?.() === 0 ? bfree : bavail) > 0
  } catch {
    // The file was moved away: where it is now, nobody can tell.
    return true
  }
}
