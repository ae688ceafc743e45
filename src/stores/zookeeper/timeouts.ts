import { Alarm, Deadlines } from '../../transport/deadlines.ts'

/** Callers' deadlines. Whoever waits has a connection open that keeps the process alive. */
export class Timeouts {
  private readonly deadlines = new Deadlines()

  /** The promise's value, or `late` after `ms`. */
  race<T>(promise: Promise<T>, ms: number, late: T): Promise<T> {
    return new Promise((resolve) => {
      const deadline = new Alarm(() => resolve(late))
      this.deadlines.add(deadline, ms)
      const settle = (value: T): void => {
        this.deadlines.remove(deadline)
        resolve(value)
      }
      promise.then(settle, () => settle(late))
    })
  }

  stop(): void {
    this.deadlines.expireAll()
  }
}
