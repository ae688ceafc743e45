/**
 * What clients did to locks, written down by themselves. The stamps are nanoseconds on a clock that all of them share:
 * on one machine the monotonic clock is the same in every process.
 *
 * A call is stamped *before* it is made and its result *after* it has come, so what is written is always less than what
 * was: an overlap that a checker finds in it did happen.
 */
export interface HistoryEvent {
  readonly process: string
  /** One grant's story, from the call that asked for it to its end. Unique within its process. */
  readonly op: number
  readonly kind: 'acquire' | 'check' | 'downgrade' | 'release' | 'lost'
  /**
   * `invoke`: about to ask. `queued`: stands in line at the store. `ok`, `fail`: it did, it did not.
   * `info`: the outcome is unknown.
   */
  readonly phase: 'invoke' | 'queued' | 'ok' | 'fail' | 'info'
  readonly at: bigint
  readonly name: string
  /** With `invoke` of an acquire. */
  readonly weight?: number
  readonly capacity?: number
  readonly token?: bigint
  /** Until when the client may believe in the grant, as it said itself. */
  readonly validUntil?: bigint
}

/** What a recorder needs to know of a lease. */
export interface RecordedLease {
  readonly token: bigint
  remaining(): number
}

export interface RecorderOptions {
  /** Nanoseconds. Default: the monotonic clock. */
  readonly now?: (() => bigint) | undefined
  readonly onEvent?: ((event: HistoryEvent) => void) | undefined
}

export interface ClaimShape {
  readonly weight?: number
  readonly capacity?: number
}

const NS_PER_MS = 1_000_000

/** Nanoseconds on a millisecond clock, for recorders in virtual time. */
export function nanoseconds(ms: number): bigint {
  return BigInt(Math.round(ms * NS_PER_MS))
}

/** Nanoseconds that mean the same in every process of the machine. In Bun and Deno `hrtime` begins with the process. */
function machineTime(): bigint {
  const { bun, deno } = process.versions
  if (bun === undefined && deno === undefined) return process.hrtime.bigint()
  return BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e6))
}

/** Writes the history of one process. */
export class Recorder {
  readonly events: HistoryEvent[] = []
  readonly process: string
  readonly now: () => bigint
  private readonly onEvent: (event: HistoryEvent) => void
  private ops = 0

  constructor(process: string, options: RecorderOptions = {}) {
    const { now = machineTime, onEvent = () => undefined } = options
    this.process = process
    this.now = now
    this.onEvent = onEvent
  }

  /** Call it just before asking for a lock. Default: a mutex. */
  acquire(name: string, { weight = 1, capacity = 1 }: ClaimShape = {}): Story {
    this.ops += 1
    const story = new Story(this, this.ops, name)
    story.write('acquire', 'invoke', { weight, capacity })
    return story
  }

  write(event: HistoryEvent): void {
    this.events.push(event)
    this.onEvent(event)
  }
}

/** The story of one grant. */
export class Story {
  private readonly recorder: Recorder
  private readonly op: number
  private readonly name: string

  constructor(recorder: Recorder, op: number, name: string) {
    this.recorder = recorder
    this.op = op
    this.name = name
  }

  queued(): void {
    this.write('acquire', 'queued')
  }

  acquired(lease: RecordedLease): void {
    this.believe('acquire', lease)
  }

  /** Call it now and then while the lock is held: a lease that is renewed is believed in for longer than it was at first. */
  check(lease: RecordedLease): void {
    this.believe('check', lease)
  }

  failed(): void {
    this.write('acquire', 'fail')
  }

  unknown(): void {
    this.write('acquire', 'info')
  }

  lost(): void {
    this.write('lost', 'ok')
  }

  /** Call it just before the downgrade: from then on nobody is promised to write alone. */
  downgrading(): void {
    this.write('downgrade', 'invoke')
  }

  downgraded(outcome: 'downgraded' | 'unknown'): void {
    this.write('downgrade', outcome === 'downgraded' ? 'ok' : 'info')
  }

  /** Call it just before the release. */
  releasing(): void {
    this.write('release', 'invoke')
  }

  released(outcome: 'released' | 'expired' | 'unknown'): void {
    this.write('release', outcome === 'released' ? 'ok' : outcome === 'expired' ? 'fail' : 'info')
  }

  write(
    kind: HistoryEvent['kind'],
    phase: HistoryEvent['phase'],
    facts: Pick<HistoryEvent, 'weight' | 'capacity' | 'token' | 'validUntil'> = {},
  ): void {
    const { recorder, op, name } = this
    recorder.write({ process: recorder.process, op, kind, phase, at: recorder.now(), name, ...facts })
  }

  private believe(kind: 'acquire' | 'check', lease: RecordedLease): void {
    // The clock first: a pause in between makes the belief shorter, never longer.
    const before = this.recorder.now()
    const validUntil = before + nanoseconds(lease.remaining())
    this.write(kind, 'ok', { token: lease.token, validUntil })
  }
}

/** One event per line. */
export function toLines(events: readonly HistoryEvent[]): string {
  return events.map((event) => `${JSON.stringify(event, (_, value: unknown) => plain(value))}\n`).join('')
}

export function fromLines(lines: string): HistoryEvent[] {
  const bigints = new Set(['at', 'token', 'validUntil'])
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const revive = (key: string, value: unknown): unknown =>
        bigints.has(key) && typeof value === 'string' ? BigInt(value) : value
      return JSON.parse(line, revive) as HistoryEvent
    })
}

function plain(value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value
}
