import { clearTimeout, now, setTimeout } from './client/time.ts'

interface Wait {
  readonly at: number
  readonly expire: () => void
  done: boolean
}

/** Answers come about in order, so most of a long list is done with from its beginning. */
const TRIM_AT = 256

/** Callers' deadlines on one timer. Those of one length come in order, so each length has a list that only grows at its end. */
export class Timeouts {
  private readonly lists = new Map<number, Wait[]>()
  private timer: ReturnType<typeof setTimeout> | undefined
  private armedFor = Infinity

  /** The promise's value, or `late` after `ms`. The promise must not reject. */
  race<T>(promise: Promise<T>, ms: number, late: T): Promise<T> {
    return new Promise((resolve) => {
      const wait: Wait = { at: now() + ms, expire: () => resolve(late), done: false }
      this.add(Math.ceil(ms), wait)
      promise.then(
        (value) => {
          wait.done = true
          resolve(value)
        },
        () => wait.expire(),
      )
    })
  }

  stop(): void {
    clearTimeout(this.timer)
    this.armedFor = Infinity
    for (const list of this.lists.values()) for (const wait of list) wait.expire()
    this.lists.clear()
  }

  private add(span: number, wait: Wait): void {
    const list = this.lists.get(span)
    if (list === undefined) this.lists.set(span, [wait])
    else if (list.push(wait) >= TRIM_AT) trim(list)
    if (wait.at < this.armedFor) this.arm(wait.at)
  }

  private arm(at: number): void {
    clearTimeout(this.timer)
    this.armedFor = at
    this.timer = setTimeout(() => this.fire(), Math.max(1, Math.ceil(at - now())))
    // Whoever waits has a connection open that keeps the process alive.
    this.timer.unref()
  }

  private fire(): void {
    this.armedFor = Infinity
    const time = now()
    let next = Infinity
    for (const [span, list] of this.lists) {
      let kept = 0
      while (kept < list.length && ((list[kept] as Wait).done || (list[kept] as Wait).at <= time)) {
        const wait = list[kept++] as Wait
        if (!wait.done) wait.expire()
      }
      list.splice(0, kept)
      if (list.length === 0) this.lists.delete(span)
      else next = Math.min(next, (list[0] as Wait).at)
    }
    if (next !== Infinity) this.arm(next)
  }
}

function trim(list: Wait[]): void {
  const open = list.findIndex(({ done }) => !done)
  if (open > list.length / 2) list.splice(0, open)
}
