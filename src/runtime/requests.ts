import { platform } from '#platform'

import { inShort, WATCH } from '../core/answers.ts'
import type { Shape } from '../core/answers.ts'
import type { MaybePromise, Unknown, Watch } from '../core/contract.ts'
import { unheard } from '../core/unheard.ts'
import { inBackground } from './background.ts'
import { LOOK_EVERY_MS } from './jump-watch.ts'
import { brokenStore } from './lane-errors.ts'
import { Line } from './line.ts'
import type { InLine } from './line.ts'

/** What becomes of an answer. `atOnce`: no time has passed. */
type Settle<T> = (answer: T | Unknown, atOnce: boolean) => void

interface Request extends InLine<Request> {
  readonly shape: Shape
  readonly settle: Settle<never>
  /** How often the clock had been looked at when it was sent. */
  readonly since: number
  /** It has been neither answered nor given up. */
  open: boolean
}

/** What a store may take beyond twice its time before it is believed to have forgotten the request. */
const GRACE_MS = 1000

export interface RequestsOptions {
  /** What kind of store it is, for the messages. */
  readonly store: string
  /** How long a request may take. */
  readonly timeout: number
  /** There is one, after there was none. */
  readonly onFirst: () => void
  /** One was answered. */
  readonly onAnswer: () => void
  /** It listens for us, although we have given it up. */
  readonly onLateWatch: (watch: Watch) => void
}

/**
 * What the store was asked. Whatever goes wrong on the way is an answer too, also what a store must not do (see core/answers.ts): throw,
 * answer something else, or never answer at all.
 */
export class Requests {
  private readonly options: RequestsOptions
  /** A Set would make a hash for each of them. */
  private readonly open = new Line<Request>()
  private readonly told = new Set<string>()
  private readonly mostLooks: number
  private looks = 0

  constructor(options: RequestsOptions) {
    this.options = options
    this.mostLooks = Math.ceil((2 * options.timeout + GRACE_MS) / LOOK_EVERY_MS)
  }

  /** How many have not been answered. */
  get size(): number {
    return this.open.length
  }

  ask<T>(shape: Shape, call: () => MaybePromise<T>, settle: Settle<T>): void {
    let answer: MaybePromise<T>
    let promise: Promise<T> | null
    try {
      // What it asks belongs to more than its caller: a claim is renewed, handed on and given up by others. A client that takes its transaction
      // or its tenant from the caller's context would have each of these in another one.
      answer = inBackground(call)
      // Not only Promise: a store may have those of another realm, or of a library.
      promise = isThenable<T>(answer) ? answer : null
    } catch (cause) {
      return settle(this.broken(shape, 'threw', cause), true)
    }
    if (promise === null) return settle(this.fitting(shape, answer as T), true)
    const since = this.looks
    const request: Request = { shape, settle, since, open: true, previous: null, following: null }
    this.open.push(request)
    if (this.open.length === 1) this.options.onFirst()
    // One that is not a Promise may begin what it promises only when it is asked for that.
    const settled = promise instanceof Promise ? promise : inBackground(() => Promise.resolve(promise))
    settled.then(
      (value: T) => {
        // What comes when it was given up is too late to mean anything: its claim is in doubt, and cleaned up.
        if (this.close(request)) this.answered(this.fitting(shape, value), settle)
        else if (shape === WATCH) this.lateWatch(this.fitting(shape, value) as Watch | Unknown)
      },
      (cause: unknown) => {
        if (this.close(request)) this.answered(this.broken(shape, 'rejected', cause), settle)
      },
    )
  }

  /** Called twice a second while there are some. Counted in looks: a machine that slept has not given the store its time. */
  look(): void {
    this.looks++
    // The oldest come first; what is asked meanwhile is young.
    for (let { first } = this.open; first !== null; { first } = this.open) {
      const { shape, settle, since } = first
      if (this.looks - since <= this.mostLooks) break
      this.close(first)
      this.answered(this.broken(shape, `did not answer within ${this.options.timeout} ms, nor later`), settle)
    }
  }

  /** Told once for each method: most of these have no caller who could hear of it. */
  broken(shape: Shape, what: string, cause?: unknown): Unknown {
    const error = brokenStore(this.options.store, shape.method, what, cause)
    if (!this.told.has(shape.method)) {
      this.told.add(shape.method)
      platform.warn(error.message, { type: 'HoldfastWarning', code: 'HOLDFAST_STORE_BROKEN' })
    }
    return { kind: 'unknown', cause: error }
  }

  /** Whether it was open. */
  private close(request: Request): boolean {
    if (!request.open) return false
    request.open = false
    this.open.remove(request)
    return true
  }

  private fitting<T>(shape: Shape, answer: T): T | Unknown {
    try {
      if (shape.fits(answer)) return answer
      unheard(answer)
      return { ...this.broken(shape, `answered ${inShort(answer, shape.each)}`), retryable: false }
    } catch (cause) {
      // An object of a connection that is gone, or one that makes its fields when they are read.
      return { ...this.broken(shape, 'answered what cannot be read', cause), retryable: false }
    }
  }

  private lateWatch(watch: Watch | Unknown): void {
    if (watch.kind === 'watching') this.options.onLateWatch(watch)
  }

  private answered<T>(answer: T | Unknown, settle: Settle<T>): void {
    settle(answer, false)
    this.options.onAnswer()
  }
}

function isThenable<T>(answer: MaybePromise<T>): answer is Promise<T> {
  return (
    answer instanceof Promise ||
    (typeof answer === 'object' && answer !== null && 'then' in answer && typeof answer.then === 'function')
  )
}
