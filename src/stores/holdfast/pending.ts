import type { Unknown } from '../../core/contract.ts'
import type { Operation } from './wire.ts'

const { setTimeout, clearTimeout, performance } = globalThis

type Settle = (answer: unknown) => void

/** A request that has no answer yet. */
class Pending {
  readonly line: string
  readonly deadline: number
  readonly settle: Settle

  constructor(line: string, deadline: number, settle: Settle) {
    this.line = line
    this.deadline = deadline
    this.settle = settle
  }
}

/**
 * The requests of one connection that have no answer yet, and one timer for all their deadlines. It is armed for the
 * earliest and looks at all of them when it fires: most are answered long before, so it seldom finds anything.
 */
export class PendingRequests {
  private readonly open = new Map<number, Pending>()
  private unsent: Pending[] = []
  private number = 0
  private timer: NodeJS.Timeout | null = null
  private armedFor = Infinity
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
    const deadline = performance.now() + timeout
    const line = `${JSON.stringify([number, operation, payload, Math.ceil(timeout)])}\n`
    return new Promise((resolve) => {
      const pending = new Pending(line, deadline, resolve)
      this.open.set(number, pending)
      this.unsent.push(pending)
      if (deadline < this.armedFor) this.arm(deadline, timeout)
      else if (this.open.size === 1) this.timer?.ref()
      if (this.open.size === 1) this.onBusy(true)
    })
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
      if (pending.deadline <= now) continue
      lines += pending.line
    }
    return lines
  }

  settle(number: number, answer: unknown): void {
    const pending = this.open.get(number)
    // Too late, and told so already.
    if (pending === undefined) return
    this.open.delete(number)
    pending.settle(answer)
    if (this.open.size === 0) this.rest()
  }

  failAll(answer: Unknown): void {
    const all = [...this.open.values()]
    this.open.clear()
    this.unsent = []
    this.rest()
    for (const pending of all) pending.settle(answer)
  }

  /** The timer may stay for the next request; it must not keep the process. */
  private rest(): void {
    this.timer?.unref()
    this.onBusy(false)
  }

  private arm(at: number, ms: number): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.armedFor = at
    this.timer = setTimeout(() => this.fire(), Math.max(1, Math.ceil(ms)))
  }

  private fire(): void {
    this.timer = null
    this.armedFor = Infinity
    const now = performance.now()
    let earliest = Infinity
    const late: Pending[] = []
    for (const [number, pending] of this.open) {
      if (pending.deadline <= now) {
        this.open.delete(number)
        late.push(pending)
      } else if (pending.deadline < earliest) earliest = pending.deadline
    }
    if (late.length > 0) this.unsent = this.unsent.filter(({ deadline }) => deadline > now)
    if (earliest !== Infinity) this.arm(earliest, earliest - now)
    if (this.open.size === 0) this.rest()
    for (const pending of late) {
      pending.settle({ kind: 'unknown', cause: new Error('The lock server did not answer in time') })
    }
    if (late.length > 0) this.onLate()
  }
}
