import { constants } from 'node:os'
import { exitOfSignal } from './exit.ts'

/** SIGUSR2, too: to a program that does not know it, it is an end. */
const ENDING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2']

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
  private readonly handlers: readonly (readonly [NodeJS.Signals, () => void])[]

  /** `impatient`: a second signal ends the process at once. `ending`: the signals that count. */
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

  stop(): void {
    for (const [signal, handler] of this.handlers) process.off(signal, handler)
  }

  /** As if this signal had ended it. */
  came(signal: NodeJS.Signals): void {
    if (this.impatient && this.exitCode !== undefined) process.exit(this.exitCode)
    this.exitCode ??= exitOfSignal(constants.signals[signal])
    this.controller.abort()
  }
}
