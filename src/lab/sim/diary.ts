import { nanoseconds, Recorder } from '../../testkit/history.ts'
import type { HistoryEvent, RecordedLease, Story } from '../../testkit/history.ts'
import type { Loss } from '../../testkit/checkers/abort-latency.ts'
import type { Wait } from '../../testkit/checkers/liveness.ts'
import type { Operation } from '../../testkit/checkers/operation.ts'
import type { TimelineEvent } from '../record.ts'
import type { Take } from './names.ts'
import type { ProcessEnv } from './process-env.ts'

type OpenWait = Omit<Wait, 'to'> & { to: Wait['to'] }

/** What one process wrote down, in true time. */
export class Diary {
  readonly process: string
  readonly recorder: Recorder
  readonly timeline: TimelineEvent[] = []
  readonly waits: OpenWait[] = []
  readonly losses: Loss[] = []
  readonly reentries: Operation[] = []
  /** Leases that said to be held when nothing was left of them, or after their release was called. */
  readonly lies: string[] = []
  private readonly env: ProcessEnv
  private readonly now: () => number
  private readonly log: (who: string, what: string) => void

  constructor(process: string, env: ProcessEnv, now: () => number, log: (who: string, what: string) => void) {
    this.process = process
    this.env = env
    this.now = now
    this.log = log
    this.recorder = new Recorder(process, { now: () => nanoseconds(now()) })
  }

  get events(): readonly HistoryEvent[] {
    return this.recorder.events
  }

  begin(name: string, { weight, capacity }: Pick<Take, 'weight' | 'capacity'>): Chapter {
    const story = this.recorder.acquire(name, { weight, capacity })
    const wait: OpenWait = { process: this.process, name, from: this.now(), to: undefined }
    this.waits.push(wait)
    return new Chapter(this, { story, op: this.recorder.events.at(-1)?.op ?? 0, name, wait })
  }

  note(name: string, kind: TimelineEvent['kind'], facts: Partial<TimelineEvent> = {}): void {
    this.timeline.push({ at: this.now(), client: this.process, name, kind, ...facts })
    this.log(this.process, `${kind} ${name} ${facts.token ?? ''}`)
  }

  at(): number {
    return this.now()
  }

  lastBelief(): number {
    return Number(this.recorder.events.at(-1)?.validUntil ?? 0n) / 1e6
  }

  /** A lease as the checkers want it: what is left of it in true time. */
  truly(lease: RecordedLease): RecordedLease {
    return { token: lease.token, remaining: () => this.env.clocks.truly(lease.remaining()) }
  }
}

interface Beginning {
  readonly story: Story
  readonly op: number
  readonly name: string
  readonly wait: OpenWait
}

/** One acquire, from the call to the end. */
export class Chapter {
  private readonly story: Story
  private readonly diary: Diary
  private readonly op: number
  private readonly name: string
  private readonly wait: OpenWait
  private token: bigint | undefined
  /** The last belief, in true time. */
  private validUntil = 0

  constructor(diary: Diary, { story, op, name, wait }: Beginning) {
    this.diary = diary
    this.story = story
    this.op = op
    this.name = name
    this.wait = wait
    diary.note(name, 'waiting')
  }

  acquired(lease: RecordedLease): void {
    this.token = lease.token
    this.wait.to = this.diary.at()
    this.story.acquired(this.diary.truly(lease))
    this.validUntil = this.diary.lastBelief()
    this.note('acquired')
  }

  failed(why: string): void {
    this.wait.to = this.diary.at()
    this.story.failed()
    this.note('failed', why)
  }

  check(lease: RecordedLease): void {
    this.story.check(this.diary.truly(lease))
    const validUntil = this.diary.lastBelief()
    const renewed = validUntil > this.validUntil + 1
    this.validUntil = Math.max(this.validUntil, validUntil)
    if (renewed) this.note('renewed')
  }

  /** Stands in line, as far as one can tell from here. */
  queued(): void {
    this.story.queued()
  }

  /** The lock was taken again by its owner, and given back at once. */
  reentered({ token }: RecordedLease, call: bigint): void {
    const now = nanoseconds(this.diary.at())
    const { process, reentries } = this.diary
    const common = { process, name: this.name, owner: `${process}#${this.op}`, token, weight: 1, capacity: 1 }
    reentries.push({ ...common, action: 'acquire', call, end: now })
    reentries.push({ ...common, action: 'release', call: now, end: now })
  }

  /** The lease says that it is held, and is not. */
  lied(why: string): void {
    const { process, lies } = this.diary
    lies.push(`${process}'s lease on "${this.name}" (token ${this.token}) said that it is held ${why}`)
  }

  /** The signal told of the loss. */
  aborted(): void {
    this.story.lost()
    this.note('lost')
    const { process, losses } = this.diary
    const { token = 0n, name, validUntil } = this
    losses.push({ process, name, token, validUntil, abortedAt: this.diary.at() })
  }

  downgrading(): void {
    this.story.downgrading()
  }

  downgraded(outcome: 'downgraded' | 'unknown'): void {
    this.story.downgraded(outcome)
    this.note('downgraded', outcome)
  }

  releasing(): void {
    this.story.releasing()
    this.note('releasing')
  }

  released(outcome: 'released' | 'expired' | 'unknown'): void {
    this.story.released(outcome)
    this.note('released', outcome)
  }

  wrote(accepted: boolean): void {
    this.note(accepted ? 'write' : 'write-refused')
  }

  private note(kind: TimelineEvent['kind'], detail?: string): void {
    const { token, validUntil } = this
    this.diary.note(this.name, kind, {
      ...(token === undefined ? {} : { token: token.toString(), validUntil }),
      ...(detail === undefined ? {} : { detail }),
    })
  }
}
