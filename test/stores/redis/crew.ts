import { Holdfast } from 'holdfast'
import type { HoldfastOptions, Lease, Store } from 'holdfast'
import { checkExclusivity, checkTokenOrder, holdsOf, Recorder } from 'holdfast/testkit'
import type { Story, Violation } from 'holdfast/testkit'

const sleep = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms))

/** Short, so that faults last longer than leases. */
const OPTIONS: HoldfastOptions = { ttl: 1_000, patience: 600, requestTimeout: 300, wait: 1_500 }

export interface Verdict {
  readonly exclusivity: readonly Violation[]
  readonly tokens: readonly Violation[]
}

/**
 * Processes that fight over one lock without a pause, and write down what they believe. Each has a store of its own, so
 * to the server they are strangers. What became of the lock under a fault is told by what they wrote.
 */
export class Crew {
  /** Sections that were entered so far. */
  sections = 0
  private readonly holdfasts: readonly Holdfast[]
  private readonly recorders: readonly Recorder[]
  private readonly stores: readonly Store[]
  private readonly name: string
  private working: Promise<unknown> = Promise.resolve()
  private done = false

  constructor(stores: readonly Store[], name: string, options: HoldfastOptions = {}) {
    this.stores = stores
    this.name = name
    this.holdfasts = stores.map((store) => new Holdfast(store, { ...OPTIONS, ...options }))
    this.recorders = stores.map((_, index) => new Recorder(`p${index}`))
  }

  start(): void {
    this.working = Promise.all(this.holdfasts.map((holdfast, index) => this.work(holdfast, index)))
  }

  /** Resolves when so many more sections were entered; rejects if that takes too long. */
  async progress(count: number, within = 20_000): Promise<void> {
    const goal = this.sections + count
    const until = performance.now() + within
    while (this.sections < goal) {
      if (performance.now() > until) {
        throw new Error(`${this.sections + count - goal} of ${count} sections in ${within} ms`)
      }
      await sleep(10)
    }
  }

  async stop(): Promise<Verdict> {
    this.done = true
    await this.working
    await Promise.all(this.holdfasts.map((holdfast) => holdfast.close()))
    for (const store of this.stores) await store.close()
    const holds = holdsOf(this.recorders.flatMap(({ events }) => events))
    return { exclusivity: checkExclusivity(holds), tokens: checkTokenOrder(holds) }
  }

  private async work(holdfast: Holdfast, index: number): Promise<void> {
    const recorder = this.recorders[index]
    while (!this.done && recorder !== undefined) {
      const story = recorder.acquire(this.name)
      let lease: Lease
      try {
        lease = await holdfast.mutex(this.name).acquire()
      } catch {
        story.failed()
        continue
      }
      await this.section(story, lease)
    }
  }

  private async section(story: Story, lease: Lease): Promise<void> {
    story.acquired(lease)
    this.sections++
    lease.signal.addEventListener('abort', () => story.lost())
    await sleep(1 + Math.random() * 5)
    story.check(lease)
    story.releasing()
    story.released(await lease.release())
  }
}
