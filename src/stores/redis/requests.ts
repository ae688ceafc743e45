import type { Unknown } from '../../core/contract.ts'
import { unknown, unknownForGood } from '../../core/unknown.ts'
import { Deadline, Deadlines } from '../../transport/deadlines.ts'
import { failed, NoAnswerError } from './failure.ts'
import type { Driver } from './client/driver.ts'

// Taken once: a user's fake timers must not reach locks.
const { setImmediate } = globalThis

const UNOPENED_MS = 1000

/**
 * Requests to the server, each with an end: whatever the driver does with its promise, the caller hears `unknown` when
 * the time is up.
 */
export class Requests {
  readonly driver: Driver
  readonly deadlines: Deadlines = new Deadlines()
  closed = false
  /** Requests of which the driver was given nothing yet. They share one listener: a driver complains of many. */
  private readonly waiting = new Set<() => void>()
  private stopListening: (() => void) | null = null
  private holding = 0

  constructor(driver: Driver) {
    this.driver = driver
  }

  /** `start` is called at once, or when the driver has become ready: until then nothing is given to it. */
  ask<T>(start: () => Promise<T>, timeout: number, onLate?: () => void): Promise<T | Unknown> {
    return new Promise((resolve) => {
      const request = new Request<T>(this, resolve, timeout)
      request.onLate = onLate
      this.deadlines.add(request, this.timeFor(timeout))
      if (this.driver.ready()) return request.send(start)
      const ended = this.ended()
      // Not in the same turn: who asks in a loop would keep the process from everything else.
      if (ended !== undefined) return void setImmediate(() => request.settle(ended))
      request.stopWaiting = this.whenReady(() => {
        const refusal = this.refusal()
        if (refusal !== undefined) request.settle(refusal)
        else if (this.driver.ready()) request.send(start)
      })
    })
  }

  private whenReady(listener: () => void): () => void {
    this.waiting.add(listener)
    if (this.stopListening === null) {
      const stopHolding = this.holdProcess()
      const stop = this.driver.onReady(() => {
        for (const waiting of this.waiting) waiting()
      })
      this.stopListening = () => {
        stop()
        stopHolding()
      }
    }
    return () => {
      this.waiting.delete(listener)
      if (this.waiting.size > 0) return
      this.stopListening?.()
      this.stopListening = null
    }
  }

  /** What waits for a connection keeps the process alive: a driver that has given up does not. Returns the function that ends it. */
  holdProcess(): () => void {
    if (++this.holding === 1) this.deadlines.holdProcess(true)
    return () => {
      if (--this.holding === 0) this.deadlines.holdProcess(false)
    }
  }

  /** What has not been answered yet is `unknown`. */
  close(): void {
    this.closed = true
    this.deadlines.expireAll()
  }

  /** A client that nobody has told to connect is waited for as long as a program may take to get there, and no longer. */
  timeFor(timeout: number): number {
    return this.driver.unopened?.() === true ? Math.min(timeout, UNOPENED_MS) : timeout
  }

  /** Why there is no answer after all that time. */
  late(timeout: number): Unknown {
    if (this.closed) return unknown(new Error('the store was closed before the server answered'))
    if (this.driver.ready()) return unknown(new NoAnswerError(true, timeout))
    const reason = this.driver.notReadyBecause()
    if (reason !== undefined && this.driver.unopened?.() === true) return unknownForGood(reason)
    return reason === undefined ? unknown(new NoAnswerError(false, timeout)) : failed(reason)
  }

  /** Of a client that its owner has ended: nothing is waited for any more. */
  ended(): Unknown | undefined {
    return this.driver.ended() ? unknownForGood(new Error('the Redis client has been closed')) : undefined
  }

  /** Said by a server that will not let us in, however long we wait; otherwise nothing. */
  refusal(): Unknown | undefined {
    const reason = this.driver.ready() ? undefined : this.driver.notReadyBecause()
    const answer = this.ended() ?? (reason && failed(reason))
    return answer?.retryable === false ? answer : undefined
  }
}

class Request<T> extends Deadline {
  private readonly requests: Requests
  private readonly resolve: (answer: T | Unknown) => void
  private readonly timeout: number
  private settled = false
  stopWaiting: (() => void) | null = null
  onLate: (() => void) | undefined

  constructor(requests: Requests, resolve: (answer: T | Unknown) => void, timeout: number) {
    super()
    this.requests = requests
    this.resolve = resolve
    this.timeout = timeout
  }

  send(start: () => Promise<T>): void {
    this.stopWaiting?.()
    this.stopWaiting = null
    start().then(
      (answer) => this.settle(answer),
      (error: unknown) => this.settle(failed(error)),
    )
  }

  override expire(): void {
    this.settle(this.requests.late(this.timeout))
    this.onLate?.()
  }

  settle(answer: T | Unknown): void {
    if (this.settled) return
    this.settled = true
    this.stopWaiting?.()
    this.requests.deadlines.remove(this)
    this.resolve(answer)
  }
}
