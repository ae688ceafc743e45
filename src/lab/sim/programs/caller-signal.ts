import type { Call } from './trace.ts'

/** An AbortSignal of one call, or of several. */
export class CallerSignal {
  private controller = new AbortController()
  private readonly calls = new Set<Call>()

  get signal(): AbortSignal {
    return this.controller.signal
  }

  join(call: Call): void {
    this.calls.add(call)
  }

  leave(call: Call): void {
    this.calls.delete(call)
  }

  /** All who share it hear of it. Who comes later has another. */
  abort(now: number): void {
    const { controller } = this
    for (const call of this.calls) call.abortedAt ??= now
    this.calls.clear()
    this.controller = new AbortController()
    controller.abort()
  }
}
