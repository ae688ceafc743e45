/**
 * What the library takes from the program that it runs in and that is not the same everywhere. Node, Bun and Deno have all of it; a browser or
 * a worker at the edge has less, and no `node:` modules. Which of the two is meant by `#platform`, package.json says ("imports").
 */
export interface Platform {
  /** `machine:process`, to tell holders and waiters apart. */
  readonly owner: () => string
  /** Milliseconds since the machine was started, sleep included; or as near to that as there is. */
  readonly bootTime: () => number
  /** 128 random bits as text without `.`. */
  readonly randomId: () => string
  /** 0 ≤ x < 1. */
  readonly random: () => number
  setTimeout(callback: () => void, ms: number): Timeout
  clearTimeout(timeout: Timeout): void
  /** After the event loop has looked for input. */
  setImmediate(callback: () => void): void
  /** To whoever looks after the program. */
  warn(message: string, details: Warning): void
  /** Signals that a process can be sent: their numbers by their names. */
  readonly signals: ReadonlyMap<string, number>
  readonly isMainThread: boolean
  /** What code is inside of, also after an `await`. Null where nothing can tell. */
  makeContext<T>(): Context<T>
  /** Whether contexts outlast an `await`. */
  readonly hasContexts: boolean
  /** The context of the caller, or of nobody, to come back to. */
  makeScope(type: string): Scope
  channel<T>(name: string): Channel<T>
}

/** A timer that can be told whether it keeps the program alive. */
export interface Timeout {
  ref(): unknown
  unref(): unknown
}

export interface Warning {
  readonly type: string
  readonly code: string
  readonly detail?: string
}

export interface Context<T> {
  getStore(): T | undefined
  run<R>(store: T, body: () => R): R
}

export interface Scope {
  runInAsyncScope<R>(body: () => R): R
}

export interface Channel<T> {
  readonly hasSubscribers: boolean
  publish(message: T): void
}
