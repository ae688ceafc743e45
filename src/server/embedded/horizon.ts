import type { Clocks } from './clocks.ts'
import type { HorizonRecord } from './horizon-file.ts'

/** Where the record is kept; `HorizonFile` in earnest. */
export interface RecordKeeper {
  read(): HorizonRecord | null
  write(record: Omit<HorizonRecord, 'writer'>): Promise<void>
  writeNow(record: Omit<HorizonRecord, 'writer'>): void
}

export interface HorizonOptions {
  readonly file: RecordKeeper
  readonly clocks: Clocks
  /** Milliseconds by which the file runs ahead of what is needed, so that nobody waits for the disk. */
  readonly ahead?: number
  /** Told of every write: null, or why it failed. */
  readonly onWrite?: (failure: unknown) => void
}

/** What one answer promises: a lease until `end` on the monotonic clock, and tokens up to `token`. */
export interface Need {
  readonly end: number
  readonly token: number
}

interface Waiting extends Need {
  readonly settle: (failure: unknown) => void
}

const AHEAD_MS = 4000
/** Uptime comes in hundredths of a second, and timers are not exact. */
const RESOLUTION_MS = 50
const MICROS = 1000
const WINDOW_MS = 5000

/**
 * The furthest lease end and the highest token that this server may hand out, held on disk. An answer that promises
 * less goes out at once; one that promises more waits until the file says so. The file is moved on in steps before it is
 * needed: to write it for every grant would make each as slow as the disk, and to write the longest possible lease
 * once for all would make every restart wait for that long.
 */
export class Horizon {
  /** Milliseconds from the start until no lease of a former run can be believed in. */
  readonly pastEndsIn: number
  /** No former run reached this token. */
  readonly tokenFloor: number
  /** The digest of the claims that the former run left, if it ended as planned. */
  readonly claims: string | null
  private readonly file: RecordKeeper
  private readonly clocks: Clocks
  private readonly ahead: number
  private readonly onWrite: (failure: unknown) => void
  private committed: Need
  private wanted: Need
  private writing: Promise<void> | null = null
  private waiting: Waiting[] = []
  /** The end of what the former run promised, while nothing more is known of it. */
  private pastEnd: number
  /** The furthest ends asked for in this window of time and in the one before. */
  private asked: [now: number, before: number] = [0, 0]
  private windowBegan = 0

  constructor({ file, clocks, ahead = AHEAD_MS, onWrite = () => undefined }: HorizonOptions) {
    const past = file.read()
    this.file = file
    this.clocks = clocks
    this.ahead = ahead
    this.onWrite = onWrite
    this.pastEndsIn = past === null ? 0 : remaining(past, clocks)
    this.tokenFloor = past?.token ?? 0
    this.claims = past?.claims ?? null
    // What the former run left is still needed if this one dies while it waits.
    this.pastEnd = clocks.mono() + this.pastEndsIn
    this.committed = { end: this.pastEnd, token: this.tokenFloor }
    this.wanted = this.committed
  }

  /** Null when the promise may be made now; otherwise it may be made when, and if, the returned promise resolves. */
  cover(need: Need): Promise<void> | null {
    const { committed, ahead, asked } = this
    if (need.end > asked[0]) asked[0] = need.end
    const near = need.end + ahead / 2 > committed.end || need.token + (ahead / 2) * MICROS > committed.token
    if (!near) return null
    this.want(need)
    if (covers(committed, need)) return null
    return new Promise((resolve, reject) => {
      const settle = (failure: unknown): void =>
        failure === undefined
          ? resolve()
          : reject(failure instanceof Error ? failure : new Error('not written'))
      this.waiting.push({ ...need, settle })
    })
  }

  /** False while somebody may hold a lease of which this run knows nothing. */
  get knowsAll(): boolean {
    return this.clocks.mono() >= this.pastEnd
  }

  /**
   * The claims of the former run are known again, and end by `end`. When this returns true no later run can take them
   * up: it must happen before anybody is answered, or what is released from now on would come back.
   */
  takeUp(end: number): boolean {
    const need = { end: Math.max(end, this.committed.end), token: this.tokenFloor }
    try {
      this.file.writeNow(this.recordOf(need))
    } catch (failure) {
      this.onWrite(failure)
      return false
    }
    this.pastEnd = 0
    this.committed = need
    this.wanted = need
    return true
  }

  /**
   * Takes back what was promised ahead: no lease lasts longer than `end`, and nothing new is promised meanwhile.
   * `claims`: the digest of all that is held and waited for. False if it could not be written.
   */
  async settleAt(end: number, claims?: string): Promise<boolean> {
    while (this.writing !== null) await this.writing
    this.wanted = { end: Math.max(end, this.pastEnd), token: this.wanted.token }
    try {
      await this.write(this.wanted, claims)
      this.committed = this.wanted
      return true
    } catch {
      // The file promises more than is needed: the next start waits longer than it has to.
      return false
    }
  }

  /**
   * Brings a horizon that a long lease once pushed out back to what is held now, or was asked for lately: whoever
   * takes the same lock again and again must not wait for the disk each time.
   */
  lower(end: number, now: number): void {
    if (now - this.windowBegan > WINDOW_MS) {
      this.asked = [0, this.asked[0]]
      this.windowBegan = now
    }
    const target = Math.max(end, this.pastEnd, ...this.asked) + this.ahead
    if (this.writing !== null || target + this.ahead > this.committed.end) return
    // Until the disk has it, nothing beyond it may be promised.
    this.committed = { end: target, token: this.committed.token }
    this.wanted = this.committed
    this.start()
  }

  private want({ end, token }: Need): void {
    this.wanted = {
      end: Math.max(this.wanted.end, end + this.ahead),
      token: Math.max(this.wanted.token, token + this.ahead * MICROS),
    }
    if (this.writing === null) this.start()
  }

  private start(): void {
    this.writing = this.writeWanted().then(() => {
      this.writing = null
    })
  }

  private async writeWanted(): Promise<void> {
    for (;;) {
      const target = this.wanted
      try {
        await this.write(target)
      } catch (failure) {
        // Nothing new can be promised; the next one who asks tries again.
        this.wanted = this.committed
        this.settle(() => true, failure)
        return
      }
      this.committed = target
      this.settle((need) => covers(target, need), undefined)
      if (this.wanted === target) return
    }
  }

  private settle(which: (need: Need) => boolean, failure: unknown): void {
    const { waiting } = this
    this.waiting = waiting.filter((one) => !which(one))
    for (const one of waiting) if (which(one)) one.settle(failure)
  }

  /** Writes what is promised already: whoever looks after the server learns that the disk is full before a client does. */
  async check(): Promise<void> {
    if (this.writing === null) this.start()
    await this.writing
  }

  private async write(need: Need, claims?: string): Promise<void> {
    const record = this.recordOf(need)
    try {
      await this.file.write(claims === undefined ? record : { ...record, claims })
      this.onWrite(null)
    } catch (failure) {
      this.onWrite(failure)
      throw failure
    }
  }

  private recordOf({ end, token }: Need): Omit<HorizonRecord, 'writer'> {
    const { clocks } = this
    const span = Math.max(0, end - clocks.mono())
    return {
      boot: clocks.boot,
      uptime: clocks.uptime() + span,
      wall: clocks.wall() + span,
      span,
      token,
    }
  }
}

function covers(committed: Need, { end, token }: Need): boolean {
  return end <= committed.end && token <= committed.token
}

function remaining(past: HorizonRecord, clocks: Clocks): number {
  const byWall = past.wall - clocks.wall()
  // Wall time may have been set in between. Unless the machine was started anew, its uptime tells as well, and what either
  // clock still waits for is waited for. Where nobody can tell which boot this is, that may be for too long, but never too short.
  const rebooted = past.boot !== null && clocks.boot !== null && past.boot !== clocks.boot
  const left = rebooted ? byWall : Math.max(past.uptime - clocks.uptime(), byWall)
  return left <= 0 ? 0 : Math.min(left, past.span) + RESOLUTION_MS
}
