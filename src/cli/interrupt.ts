import { constants } from 'node:os'
import { exitOfSignal } from './exit.ts'

/** SIGUSR2, too: to a program that does not know it, it is an end. */
const ENDING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2']

/** One wish to end may come twice: from the terminal, and from the program that has started this one and passes it on. */
const ONE_WISH_MS = 500

export interface InterruptOptions {
  readonly impatient?: boolean
  readonly ending?: readonly NodeJS.Signals[]
}

/** Lets a wait be ended by a signal in an orderly way, so that nothing is left in a queue. */
export class Interrupt {
  /** The exit code for the signal that came, if one did. */
  exitCode: number | undefined
  private readonly controller = new AbortController()
  private readonly impatient: boolean
  private cameAt = 0
  private readonly handlers: readonly (readonly [NodeJS.Signals, () => void])[]

  /** `impatient`: a second signal, half a second later or more, ends the process at once. `ending`: the signals that count. */
  constructor({ impatient = false, ending = ENDING }: InterruptOptions = {}) {
    this.impatient = impatient
    this.handlers = ending.map((signal) => [signal, () => this.came(signal)] as const)
    for (const [signal, handler] of this.handlers) process.on(signal, handler)
  }

  get signal(): AbortSignal {
    return this.controller.signal
  }

  /** Resolves when a signal comes. */
  async arrival(): Promise<void> {
    if (this.signal.aborted) return
    await new Promise<void>((resolve) =>
      this.signal.addEventListener('abort', () => resolve(), { once: true }),
    )
  }

  /** What a promise comes to, or undefined if a signal comes first. Leaves nothing behind, however often it is asked. */
  async orArrival<T>(promise: Promise<T>): Promise<T | undefined> {
    if (this.signal.aborted) return undefined
    let came = (): void => {}
    const arrival = new Promise<undefined>((resolve) => (came = () => resolve(undefined)))
    this.signal.addEventListener('abort', came)
    try {
      return await Promise.race([promise, arrival])
    } finally {
      this.signal.removeEventListener('abort', came)
    }
  }

  stop(): void {
    for (const [signal, handler] of this.handlers) process.off(signal, handler)
  }

  /** As if this signal had ended it. */
  came(signal: NodeJS.Signals): void {
    if (this.exitCode !== undefined) {
      if (this.impatient && performance.now() - this.cameAt >= ONE_WISH_MS) process.exit(this.exitCode)
      return
    }
    this.cameAt = performance.now()
    this.exitCode = exitOfSignal(constants.signals[signal])
    this.controller.abort()
  }
}
