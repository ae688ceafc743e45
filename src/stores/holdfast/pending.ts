import type { Unknown } from '../../core/contract.ts'
import { unknown } from '../../core/unknown.ts'
import { Deadline, Deadlines } from '../../transport/deadlines.ts'
import type { Operation } from './wire.ts'

const { performance } = globalThis

type Settle = (answer: unknown) => void

/** A request that has no answer yet. */
class Pending extends Deadline {
  readonly number: number
  readonly operation: Operation
  readonly line: string
  readonly settle: Settle
  private readonly requests: PendingRequests

  constructor(
    requests: PendingRequests,
    asked: { readonly number: number; readonly operation: Operation; readonly line: string },
    settle: Settle,
  ) {
    super()
    this.requests = requests
    this.number = asked.number
    this.operation = asked.operation
    this.line = asked.line
    this.settle = settle
  }

  expire(): void {
    this.requests.late(this)
  }
}

/** The requests of one connection that have no answer yet. */
export class PendingRequests {
  private readonly open = new Map<number, Pending>()
  private unsent: Pending[] = []
  private number = 0
  /** Whoever waits for an answer keeps the process alive. */
  private readonly deadlines = new Deadlines({ holdProcess: true, onLate: () => this.tellOfLate() })
  private readonly onLate: () => void
  private readonly onBusy: (busy: boolean) => void

  constructor(onLate: () => void, onBusy: (busy: boolean) => void) {
    this.onLate = onLate
    this.onBusy = onBusy
  }

  get size(): number {
    return this.open.size
  }

  add(operation: Operation, payload: unknown, timeout: number): Promise<unknown> {
    this.number++
    const { number } = this
    const line = `${JSON.stringify([number, operation, payload, Math.ceil(timeout)])}\n`
    return new Promise((resolve) => {
      const pending = new Pending(this, { number, operation, line }, resolve)
      this.open.set(number, pending)
      this.unsent.push(pending)
      this.deadlines.add(pending, timeout)
      if (this.open.size === 1) this.onBusy(true)
    })
  }

  /** What has this number; `late` if nobody waits for its answer any more, null if there was no such request. */
  askedWith(number: number): Operation | 'late' | null {
    if (number < 1 || number > this.number) return null
    return this.open.get(number)?.operation ?? 'late'
  }

  /** Everything that waits to be sent and whose time is not up, as one text. */
  takeUnsent(): string {
    const { unsent } = this
    if (unsent.length === 0) return ''
    this.unsent = []
    const now = performance.now()
    let lines = ''
    for (const pending of unsent) {
      // What is late is settled by the timer, and is not sent any more.
      if (pending.at <= now) continue
      lines += pending.line
    }
    return lines
  }

  settle(number: number, answer: unknown): void {
    const pending = this.open.get(number)
    // Too late, and told so already.
    if (pending === undefined) return
    this.open.delete(number)
    this.deadlines.remove(pending)
    pending.settle(answer)
    if (this.open.size === 0) this.onBusy(false)
  }

  failAll(answer: Unknown): void {
    const all = [...this.open.values()]
    this.open.clear()
    this.unsent = []
    for (const pending of all) this.deadlines.remove(pending)
    this.onBusy(false)
    for (const pending of all) pending.settle(answer)
  }

  late(pending: Pending): void {
    this.open.delete(pending.number)
    pending.settle(unknown(new Error('The lock server did not answer in time')))
  }

  private tellOfLate(): void {
    // What is late stands in no heap any more, and is not sent.
    this.unsent = this.unsent.filter(({ slot }) => slot >= 0)
    if (this.open.size === 0) this.onBusy(false)
    this.onLate()
  }
}
