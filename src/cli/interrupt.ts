import { constants } from 'node:os'
import { exitOfSignal } from './exit.ts'

const ENDING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']

/** Lets a wait be ended by a signal in an orderly way, so that nothing is left in a queue. */
export class Interrupt {
  /** The exit code for the signal that came, if one did. */
  exitCode: number | undefined
  private readonly controller = new AbortController()
  private readonly handlers = ENDING.map((signal) => [signal, () => this.came(signal)] as const)

  constructor() {
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

  private came(signal: NodeJS.Signals): void {
    this.exitCode ??= exitOfSignal(constants.signals[signal])
    this.controller.abort()
  }
}
