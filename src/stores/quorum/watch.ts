import type { StoreEvent, StoreListener, Unknown, Watch } from '../../core/contract.ts'
import { endWatch } from '../../core/unheard.ts'
import type { QuorumClock } from './clock.ts'
import { noQuorum, stateOf } from './failure.ts'
import type { Quorum } from './quorum.ts'

/** Whoever was told by one store that a name is free waits so long for the others to say so too. */
const TOGETHER_MS = 2
/** What the slowest store says of a release that was told is not told again. */
const LATE_MS = 50
/** How long until a store that could not be watched is asked again. */
const AGAIN_MS = 1000

/** What the stores tell the sessions of this client, told once. */
export class Watching {
  private readonly quorum: Quorum
  private readonly sessions = new Map<string, SessionWatch>()

  constructor(quorum: Quorum) {
    this.quorum = quorum
  }

  /** Whether the session would hear of anything. */
  has(session: string): boolean {
    return this.sessions.has(session)
  }

  get any(): boolean {
    return this.sessions.size > 0
  }

  watch(session: string, listener: StoreListener, timeout: number): Promise<Watch | Unknown> {
    this.sessions.get(session)?.stop()
    const watch = new SessionWatch(this.quorum, session, listener)
    this.sessions.set(session, watch)
    const stop = (): void => {
      watch.stop()
      if (this.sessions.get(session) === watch) this.sessions.delete(session)
    }
    return watch.start(timeout).then((problem) => {
      if (problem === undefined) return { kind: 'watching', stop }
      stop()
      return problem
    })
  }

  close(): void {
    for (const watch of this.sessions.values()) watch.stop()
    this.sessions.clear()
  }
}

class SessionWatch {
  private readonly quorum: Quorum
  private readonly setTimer: QuorumClock['setTimer']
  private readonly session: string
  private readonly listener: StoreListener
  private readonly watches: (Watch | null)[]
  /** Names of which some stores, not enough yet, have said that they may be free. */
  private readonly freed = new Map<string, Freed>()
  private again: (() => void) | null = null
  private stopped = false

  constructor(quorum: Quorum, session: string, listener: StoreListener) {
    this.quorum = quorum
    this.setTimer = quorum.settings.clock.setTimer
    this.session = session
    this.listener = listener
    this.watches = quorum.nodes.map(() => null)
  }

  /** Resolves when a majority can be heard; the others are watched as soon as that is possible. */
  start(timeout: number): Promise<Unknown | undefined> {
    const { nodes, majority } = this.quorum
    return new Promise((resolve) => {
      let watching = 0
      let pending = nodes.length
      const answers: { readonly kind: string }[] = []
      this.watchAll(timeout, (answer, at) => {
        pending--
        answers[at] = answer.kind === 'watching' ? { kind: 'granted' } : answer
        if (answer.kind === 'watching' && ++watching === majority) resolve(undefined)
        if (pending > 0) return
        if (watching < majority) {
          resolve(
            noQuorum(
              nodes.map(({ label }, node) => stateOf(label, answers[node])),
              majority,
            ),
          )
        } else if (watching < nodes.length) this.tryAgain()
      })
    })
  }

  stop(): void {
    this.stopped = true
    this.again?.()
    for (const { stopTimer } of this.freed.values()) stopTimer()
    for (const watch of this.watches) if (watch !== null) endWatch(watch)
  }

  private watchAll(timeout: number, heard: (answer: Watch | Unknown, at: number) => void): void {
    this.watches.forEach((watch, at) => {
      if (watch !== null) return
      this.quorum.ask<Watch | Unknown>(
        at,
        (voter) => voter.watch(this.session, (event) => this.told(event, at), timeout),
        (answer) => {
          if (answer.kind === 'watching') {
            if (this.stopped) endWatch(answer)
            else this.watches[at] = answer
          }
          heard(answer, at)
        },
      )
    })
  }

  private tryAgain(): void {
    if (this.stopped) return
    this.again = this.setTimer(() => {
      this.again = null
      let pending = this.watches.filter((watch) => watch === null).length
      this.watchAll(AGAIN_MS, () => {
        if (--pending === 0 && this.watches.includes(null)) this.tryAgain()
      })
    }, AGAIN_MS)
  }

  private told(event: StoreEvent, at: number): void {
    if (this.stopped) return
    if (event.kind === 'freed') this.mayBeFree(event.name, at)
    else this.listener(event)
  }

  /** A holder that leaves tells one store after the other: whoever asks after the first one finds the rest taken. */
  private mayBeFree(name: string, at: number): void {
    const known = this.freed.get(name)
    // A store that says it a second time speaks of another release.
    if (known === undefined || (known.told && known.nodes.has(at))) {
      known?.stopTimer()
      const stopTimer = this.setTimer(() => this.free(name), TOGETHER_MS)
      this.freed.set(name, { stopTimer, nodes: new Set([at]), told: false })
      return
    }
    known.nodes.add(at)
    if (!known.told && known.nodes.size >= this.quorum.majority) this.free(name)
  }

  private free(name: string): void {
    const known = this.freed.get(name)
    if (known === undefined) return
    known.stopTimer()
    known.told = true
    known.stopTimer = this.setTimer(() => {
      if (this.freed.get(name) === known) this.freed.delete(name)
    }, LATE_MS)
    this.listener({ kind: 'freed', name })
  }
}

interface Freed {
  stopTimer: () => void
  readonly nodes: Set<number>
  told: boolean
}
