import { checkFunction, checkMs, checkOptions, MAX_MS } from '../core/arguments.ts'
import { backOff } from '../core/back-off.ts'
import { ClosedError, InvalidArgumentError, LockTimeoutError } from '../core/errors.ts'
import { printable } from '../core/printing.ts'
import type { Holdfast } from '../locks/holdfast.ts'
import type { Lock } from '../locks/lock.ts'
import { checkEnv } from '../locks/options.ts'
import { systemEnv } from '../runtime/env.ts'
import type { Env } from '../runtime/env.ts'
import type { Lease } from '../runtime/lease.ts'
import { checkHoldfast } from './check-holdfast.ts'
import { leaderOf } from './leader-info.ts'
import type { LeaderInfo } from './leader-info.ts'
import { standAlone } from './office.ts'
import { pauseUnlessClosed } from './pause.ts'
import { tell } from './tell.ts'
import { LeaseTerm, obeyed } from './term.ts'
import type { Term } from './term.ts'

export interface LeaderOptions {
  /**
   * Called when this process has become the leader. The signal aborts when the term ends: lost, resigned or stopped. To
   * return does not end the term; to throw or reject does. The next term here does not begin before what this returned
   * has settled.
   */
  readonly onElected: (signal: AbortSignal, term: Term) => unknown
  /** Hears what `onElected` threw, also while stepping down, and what kept this process from standing for election. */
  readonly onError?: ((error: unknown) => unknown) | undefined
  /** Milliseconds after which a leader that died is replaced. Default: that of the Holdfast. */
  readonly ttl?: number | undefined
  /** Clocks, timers and randomness; for tests. */
  readonly env?: Env | undefined
}

/** `stepping-down`: the term is over, and `onElected` has not come to its end. */
export type CandidateState = 'campaigning' | 'leading' | 'stepping-down' | 'stopped'

export interface CandidateHealth {
  readonly ok: boolean
  readonly state: CandidateState
  /** Milliseconds for which the state, or the trouble, has lasted. */
  readonly for: number
  /** What is wrong, in words. */
  readonly problem?: string
}

/** One process that stands for election until it is stopped. */
export interface Candidate extends AsyncDisposable {
  readonly name: string
  readonly state: CandidateState
  /** Whether this process leads now, by its own clocks. */
  readonly leading: boolean
  /**
   * Ends the term, if there is one, when `onElected` has come to its end; then stands again, behind the others. Inside
   * `onElected` it does not wait for that end, which would wait for it.
   */
  resign(): Promise<void>
  /** Resigns and does not stand again. `onElected` is not called any more from the call on. */
  stop(): Promise<void>
  /** Who leads, as the store has it. */
  observe(): Promise<LeaderInfo | null>
  /** For a liveness probe. `grace`: milliseconds that a trouble may last. Default 30,000. */
  health(options?: { readonly grace?: number | undefined }): CandidateHealth
}

const OPTIONS: readonly (keyof LeaderOptions)[] = ['onElected', 'onError', 'ttl', 'env']

/** Stands for election at once, and again after every term, until stopped. */
export function leader(holdfast: Holdfast, name: string, options: LeaderOptions): Candidate {
  // Who writes no types may have left them out.
  if (typeof (options as LeaderOptions | undefined)?.onElected !== 'function') {
    const message = 'onElected must be a function: leader(holdfast, name, { onElected: (signal, term) => … })'
    throw new InvalidArgumentError(message, { argument: 'onElected' })
  }
  checkOptions(options, OPTIONS, 'ttl')
  checkHoldfast(holdfast)
  checkFunction('onError', options.onError)
  if (options.env !== undefined) checkEnv(options.env)
  return new Campaign(holdfast, name, options)
}

/** Waiting is cut into pieces: after each it is known whether another one leads or the store is silent. */
const ROUND_MS = 15_000
const BACK_OFF_MS = { first: 100, longest: 10_000 }
/** Terms that are over sooner, one after the other, count as failures: they would keep everything else from running. */
const BRIEF_MS = 100

class Campaign implements Candidate {
  readonly name: string
  private readonly holdfast: Holdfast
  private readonly options: LeaderOptions
  private readonly env: Env
  private readonly lock: Lock
  private readonly stopping = new AbortController()
  private readonly ended: Promise<void>
  private term: LeaseTerm | null = null
  private letNextStand = (): void => {}
  private termOver: Promise<void> = Promise.resolve()
  private current: CandidateState = 'campaigning'
  private since: number
  private troubleSince: number | null = null

  constructor(holdfast: Holdfast, name: string, options: LeaderOptions) {
    this.holdfast = holdfast
    this.name = name
    this.options = options
    this.env = options.env ?? systemEnv
    // Strict, so that it stands in no line with others here who take the lock of that name: see office.ts.
    this.lock = holdfast.mutex(name, { fair: 'strict', ttl: options.ttl })
    this.since = this.env.mono()
    this.ended = this.campaign()
  }

  get state(): CandidateState {
    // The clock may know what no timer has told yet.
    if (this.current === 'leading' && !this.leading) this.enter('stepping-down')
    return this.current
  }

  get leading(): boolean {
    return this.term?.lasts ?? false
  }

  async resign(): Promise<void> {
    const { term } = this
    term?.resign()
    if (term?.isCaller !== true) await this.termOver
  }

  async stop(): Promise<void> {
    const { term } = this
    this.stopping.abort()
    term?.resign()
    if (term?.isCaller !== true) await this.ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  observe(): Promise<LeaderInfo | null> {
    return leaderOf(this.holdfast, this.name)
  }

  health(options: { readonly grace?: number | undefined } = {}): CandidateHealth {
    checkOptions(options, ['grace'], 'grace')
    const { grace = 30_000 } = options
    checkMs('grace', grace, { min: 0, max: MAX_MS })
    const { state } = this
    const lasted = this.env.mono() - (this.troubleSince ?? this.since)
    const problem = this.problem(state)
    if (problem === null || (lasted <= grace && state !== 'stopped')) return { ok: true, state, for: lasted }
    return { ok: false, state, for: lasted, problem }
  }

  private problem(state: CandidateState): string | null {
    if (state === 'stepping-down') return 'onElected goes on although its term is over'
    if (state === 'stopped' && !this.stopping.signal.aborted) return 'the Holdfast was closed'
    return this.troubleSince === null ? null : 'the store does not let this process stand for election'
  }

  private async campaign(): Promise<void> {
    const { signal } = this.stopping
    let failures = 0
    while (!signal.aborted) {
      this.enter('campaigning')
      const next = await standAlone(this.holdfast, this.name, signal)
      if (next === null) break
      this.letNextStand = next
      const course = await this.candidacy()
      next()
      if (course === 'closed') break
      failures = course === 'served' ? 0 : failures + 1
      if (course === 'failed' || failures > 1) {
        this.enter('campaigning')
        const ms = backOff(failures - 1, BACK_OFF_MS, this.env.random())
        await pauseUnlessClosed(this.env, this.holdfast, ms, signal)
      }
    }
    // Who does not stand any more is kept from nothing.
    this.troubleSince = null
    this.enter('stopped')
  }

  /** Stands until elected, and serves. `brief`: a term that was over at once. */
  private async candidacy(): Promise<'served' | 'brief' | 'failed' | 'closed'> {
    for (;;) {
      const lease = await this.stand()
      if (lease === 'not yet') continue
      if (lease === 'closed') return 'closed'
      if (lease === null) return 'failed'
      const from = this.env.mono()
      // Between the grant and this moment it may have been told to stop, or lost it again: then it was never elected.
      const elected = !this.stopping.signal.aborted && !lease.signal.aborted
      if (elected && !(await this.serve(lease))) return 'failed'
      if (!elected) await lease.release()
      return this.env.mono() - from < BRIEF_MS ? 'brief' : 'served'
    }
  }

  /** Null: the store refused, or did not answer. */
  private async stand(): Promise<Lease | 'not yet' | 'closed' | null> {
    const { signal } = this.stopping
    try {
      const lease = await this.lock.acquire({ wait: ROUND_MS, signal })
      this.troubleSince = null
      return lease
    } catch (error) {
      if (signal.aborted || error instanceof ClosedError) return 'closed'
      if (error instanceof LockTimeoutError) {
        this.troubleSince = null
        return 'not yet'
      }
      this.troubleSince ??= this.env.mono()
      this.report(error)
      return null
    }
  }

  /** A term from its first to its last moment. False: the callback failed. */
  private async serve(lease: Lease): Promise<boolean> {
    const term = new LeaseTerm(lease)
    let finish = (): void => {}
    this.termOver = new Promise((resolve) => (finish = resolve))
    this.term = term
    this.enter('leading')
    const well = await this.callBack(term)
    if (well) await term.over
    else term.resign()
    // Only now: nobody else may begin while the callback of this term still runs.
    await lease.release()
    this.term = null
    finish()
    return well
  }

  /** Resolves when the callback has come to its end. */
  private async callBack(term: LeaseTerm): Promise<boolean> {
    const stepDown = (): void => {
      if (this.current === 'leading') this.enter('stepping-down')
      // The others cannot be elected any more, and need not wait for this callback to hear of it.
      if (this.holdfast.closed) this.letNextStand()
    }
    term.over.then(stepDown).catch(() => {})
    try {
      await term.call(() => this.options.onElected(term.signal, term))
      return true
    } catch (error) {
      if (obeyed(error, term)) return true
      this.report(error)
      return false
    }
  }

  private enter(state: CandidateState): void {
    if (state === this.current) return
    this.current = state
    this.since = this.env.mono()
  }

  private report(error: unknown): void {
    tell(() => this.options.onError?.(error))
  }
}

printable(Campaign, 'Candidate', ({ name, state }) => ({ name, state }))
