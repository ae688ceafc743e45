import type { AnswerOf, QueueCommand } from '../../core/claim-queue.ts'
import type { Call } from './client.ts'

// Taken once: a user's fake timers must not make anybody wait for ever.
const { setTimeout, clearTimeout } = globalThis

export type Answer = AnswerOf[QueueCommand['kind']]

/** What became of a command, or why it is not known. */
export type Outcome = { readonly answer: Answer } | { readonly error: unknown }

export interface Entry {
  readonly command: QueueCommand
  readonly call: Call
}

/** Sends commands on one name, all in one step. */
export type Lead = (entries: readonly Entry[]) => Promise<readonly Outcome[]>

interface Waiting extends Entry {
  /** Somebody has sent it along; or it is to send these, itself among them. */
  readonly told: (turn: Outcome | { readonly lead: readonly Waiting[] }) => void
}

interface Line {
  leaders: number
  waiting: Waiting[]
  timer: NodeJS.Timeout | undefined
}

/** How long those in line wait for the one who is under way: its connection may lead nowhere. */
const LONGEST_MS = 250

/**
 * A line for each name, of commands that this process has for it. One is under way; what comes meanwhile is sent as one step
 * after it. A step is written over the row that it was computed from, so of those who are under way together only one gets on,
 * and each of the others has used a connection, a read and a write of the row for nothing: from a certain number of
 * callers on all would be busy with that, and none would be done before its time is over.
 */
export class Lines {
  private readonly lines = new Map<string, Line>()

  async send(name: string, entry: Entry, lead: Lead): Promise<Answer> {
    let line = this.lines.get(name)
    let entries: readonly Entry[] = [entry]
    let others: readonly Waiting[] = []
    if (line === undefined) {
      this.lines.set(name, (line = { leaders: 1, waiting: [], timer: undefined }))
    } else {
      const turn = await this.stand(name, line, entry)
      if (!('lead' in turn)) return given(turn)
      entries = others = turn.lead
    }
    let outcomes: readonly Outcome[]
    try {
      outcomes = await lead(entries)
    } catch (error) {
      outcomes = entries.map(() => ({ error }))
    }
    line.leaders--
    if (line.leaders === 0) this.next(name, line)
    const outcomeOf = (index: number): Outcome =>
      outcomes[index] ?? { error: new Error('There was no answer') }
    others.forEach(({ call, told }, index) => {
      if (call !== entry.call) told(outcomeOf(index))
    })
    return given(outcomeOf(entries.findIndex(({ call }) => call === entry.call)))
  }

  private stand(
    name: string,
    line: Line,
    entry: Entry,
  ): Promise<Outcome | { readonly lead: readonly Waiting[] }> {
    return new Promise((told) => {
      line.waiting.push({ ...entry, told })
      line.timer ??= setTimeout(() => this.next(name, line), LONGEST_MS).unref()
    })
  }

  /** Has one of those in line send them all: who has the most time, for what becomes of its call becomes of all. */
  private next(name: string, line: Line): void {
    clearTimeout(line.timer)
    line.timer = undefined
    // The others have been told already that their time is over.
    const live = line.waiting.filter(({ call }) => !call.expired)
    line.waiting = []
    const leader = live.reduce<Waiting | undefined>(
      (most, one) => (most === undefined || one.call.until >= most.call.until ? one : most),
      undefined,
    )
    if (leader !== undefined) {
      line.leaders++
      leader.told({ lead: live })
    } else if (line.leaders === 0) this.lines.delete(name)
  }
}

function given(outcome: Outcome): Answer {
  if ('error' in outcome) throw outcome.error
  return outcome.answer
}

const lines = new WeakMap<object, Map<string, Lines>>()

/** One for all stores on a pool that have the same table, and say so with the same key. */
export function linesOn(pool: object, key: string): Lines {
  let tables = lines.get(pool)
  if (tables === undefined) lines.set(pool, (tables = new Map<string, Lines>()))
  let found = tables.get(key)
  if (found === undefined) tables.set(key, (found = new Lines()))
  return found
}
