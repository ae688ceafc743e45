import type { StoreEvent, StoreListener, Unknown, Watch } from '../core/contract.ts'
import { eventToWire } from '../stores/holdfast/wire.ts'
import type { Wire } from '../stores/holdfast/wire.ts'
import type { Caller } from './caller.ts'
import { tooMany, unavailable } from './failure.ts'
import type { Sessions } from './sessions.ts'
import type { StreamCounts } from './stream-counts.ts'

/** For so long a session is listened for between two requests that ask what there is. */
const KEPT_MS = 15_000
const STORE_TIMEOUT_MS = 5000
/** Events that nobody has fetched, of one session, of one principal, and of all together. Beyond that, they may have been missed. */
const MOST = { each: 200, ofOne: 25_000, all: 100_000 }

export interface Question {
  readonly session: string
  /** The last event that has come to the client; those before it are forgotten. */
  readonly after: number
  /** Milliseconds. */
  readonly wait: number
}

export interface Delivery {
  /** Listened for since now: what happened before is not known. */
  readonly fresh: boolean
  /** The number of the last event. */
  readonly last: number
  readonly events: readonly Wire<StoreEvent>[]
}

interface Mailbox {
  watch: Watch | null
  /** The latest ones; the last has the number `last`. */
  events: StoreEvent[]
  last: number
  /** The request that waits for the next one. */
  deliver: ((delivery: Delivery) => void) | null
  timer: NodeJS.Timeout | undefined
  delivering: boolean
  /** Whose token it was opened with: when that may do other things, it asks again. */
  readonly caller: Caller
  readonly end: () => void
}

/**
 * Events for clients that cannot keep a connection open to be told: they ask, and a question waits until there is something to say. An
 * event is kept until the client says that it has come, so that an answer which gets lost loses none.
 */
export class Mailboxes {
  private readonly sessions: Sessions
  private readonly counts: StreamCounts
  private readonly boxes = new Map<string, Mailbox>()
  private kept = 0
  /** The same of each principal, by its name. */
  private readonly keptOf = new Map<string, number>()

  constructor(sessions: Sessions, counts: StreamCounts) {
    this.sessions = sessions
    this.counts = counts
  }

  get size(): number {
    return this.boxes.size
  }

  /** `onGone` is given what to do when the client goes away. */
  async ask(caller: Caller, question: Question, onGone: (leave: () => void) => void): Promise<Delivery> {
    const { principal } = caller
    this.sessions.assertOwn(principal, question.session)
    if (!this.counts.enter(principal)) throw tooMany('streams', 5)
    try {
      const known = this.boxes.get(question.session)
      if (known === undefined || known.watch === null) return await this.open(caller, question.session)
      return await this.next(known, question, onGone)
    } finally {
      this.counts.leave(principal)
    }
  }

  /** The client does not listen any more. */
  end(caller: Caller, session: string): void {
    this.sessions.assertOwn(caller.principal, session)
    this.drop(session)
  }

  /** Whoever waits is answered. */
  close(): void {
    for (const session of this.boxes.keys()) this.drop(session)
  }

  private async open(caller: Caller, session: string): Promise<Delivery> {
    const box: Mailbox = this.boxes.get(session) ?? {
      watch: null,
      events: [],
      last: 0,
      deliver: null,
      timer: undefined,
      delivering: false,
      caller,
      end: () => this.drop(session),
    }
    this.boxes.set(session, box)
    // It may have been dropped before the store has answered.
    const listener: StoreListener = (event) => {
      if (this.boxes.get(session) === box) this.told(box, event)
    }
    let answer: Watch | Unknown
    try {
      answer = await this.sessions.watch(session, caller, listener, STORE_TIMEOUT_MS)
      if (answer.kind === 'unknown') throw unavailable()
    } catch (error) {
      // Nobody listens: a session that is refused must leave nothing behind.
      if (box.watch === null && this.boxes.get(session) === box) this.drop(session)
      throw error
    }
    // It has stopped meanwhile, or somebody asked twice at once.
    if (this.boxes.get(session) !== box) answer.stop()
    box.watch?.stop()
    box.watch = answer
    if (this.boxes.get(session) === box) box.caller.principal.whenChanged.add(box.end)
    this.rest(session, box)
    return { fresh: true, last: box.last, events: [] }
  }

  private next(
    box: Mailbox,
    { session, after, wait }: Question,
    onGone: (leave: () => void) => void,
  ): Promise<Delivery> {
    // A later question has its place: the connection of the earlier one may be long gone.
    this.deliver(box)
    const unread = box.last - after
    if (unread < 0 || unread > box.events.length) this.lose(box)
    else this.forget(box, box.events.length - unread)
    return new Promise((resolve) => {
      clearTimeout(box.timer)
      box.deliver = (delivery) => {
        box.deliver = null
        this.rest(session, box)
        resolve(delivery)
      }
      const { deliver } = box
      onGone(() => {
        if (box.deliver === deliver) this.deliver(box)
      })
      if (box.events.length > 0) return this.deliver(box)
      box.timer = setTimeout(() => this.deliver(box), wait)
      box.timer.unref()
    })
  }

  private told(box: Mailbox, event: StoreEvent): void {
    box.events.push(event)
    box.last++
    const ofOne = this.keep(box, 1)
    if (box.events.length > MOST.each || ofOne > MOST.ofOne || this.kept > MOST.all) this.lose(box)
    if (box.deliver === null || box.delivering) return
    // What happens together goes together.
    box.delivering = true
    setImmediate(() => {
      box.delivering = false
      this.deliver(box)
    })
  }

  /** Events may have been missed, and the client has to ask about everything. */
  private lose(box: Mailbox): void {
    this.forget(box, box.events.length)
    box.events.push({ kind: 'gap' })
    box.last++
    this.keep(box, 1)
  }

  private forget(box: Mailbox, count: number): void {
    box.events.splice(0, count)
    this.keep(box, -count)
  }

  private keep({ caller: { principal } }: Mailbox, more: number): number {
    const ofOne = (this.keptOf.get(principal.name) ?? 0) + more
    this.kept += more
    if (ofOne > 0) this.keptOf.set(principal.name, ofOne)
    else this.keptOf.delete(principal.name)
    return ofOne
  }

  private deliver(box: Mailbox): void {
    box.deliver?.({ fresh: false, last: box.last, events: box.events.map(eventToWire) })
  }

  /** Nobody asks just now. */
  private rest(session: string, box: Mailbox): void {
    clearTimeout(box.timer)
    if (this.boxes.get(session) !== box) return
    box.timer = setTimeout(() => this.drop(session), KEPT_MS)
    box.timer.unref()
  }

  private drop(session: string): void {
    const box = this.boxes.get(session)
    if (box === undefined) return
    this.boxes.delete(session)
    box.caller.principal.whenChanged.delete(box.end)
    this.deliver(box)
    clearTimeout(box.timer)
    this.forget(box, box.events.length)
    box.watch?.stop()
  }
}
