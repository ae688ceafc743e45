import { checkMs, checkName, checkOptions, MAX_MS } from '../core/arguments.ts'
import { InvalidArgumentError } from '../core/errors.ts'
import { Holdfast } from '../locks/holdfast.ts'
import { OPTIONS } from '../locks/options.ts'
import type { HoldfastOptions } from '../locks/options.ts'
import type { Env } from '../runtime/env.ts'
import { MemoryStore } from '../stores/memory/store.ts'
import { globalClock, TestClock } from './clocks.ts'
import { LockLog } from './lock-log.ts'
import type { LockRecord } from './lock-log.ts'
import { TestStore } from './test-store.ts'
import type { Fault } from './test-store.ts'

type Fixed = 'env' | 'clock' | 'closeStore'
export interface TestLocksOptions extends Omit<HoldfastOptions, Fixed> {
  /**
   * Whose time passes. `test`: time stands still until the test lets it pass (`advance`, `until`). `global`: the clocks and timers that are global, the
   * system's or the fake ones of a test runner. Default: `test`.
   */
  readonly time?: 'test' | 'global' | undefined
}

const FIXED: readonly string[] = ['env', 'clock', 'closeStore'] satisfies Fixed[]
const KNOWN: readonly string[] = ['time', ...OPTIONS.holdfast.filter((name) => !FIXED.includes(name))]
/** Twice what a lock waits for if nobody says otherwise. */
const LONG_ENOUGH_MS = 60_000

let made = 0

/** Locks in memory for the tests of code that locks: a clock that the test drives, other programs, a store that fails on purpose. */
export class TestLocks implements AsyncDisposable {
  /** For the code under test. */
  readonly holdfast: Holdfast
  /** Another program, with locks at the same store: what it holds is busy for the code under test. */
  readonly others: Holdfast
  /** Their time, for what takes one of its own: `once`, `cached` and `leader` have an option `env`. */
  readonly env: Env
  private readonly store: TestStore
  private readonly log: LockLog
  private readonly clock: TestClock | null

  constructor(options: TestLocksOptions = {}) {
    checkOptions(options, KNOWN, 'ttl')
    const { time = 'test', ...rest } = options
    if (time !== 'test' && time !== 'global')
      throw new InvalidArgumentError("time must be 'test' or 'global'", { argument: 'time' })
    this.clock = time === 'test' ? new TestClock() : null
    const env = this.clock ?? globalClock()
    this.env = env
    const memory = new MemoryStore({
      now: () => ({ ms: env.mono(), micros: Math.floor(env.wall() * 1000) }),
    })
    // Events are told by the kind of the store: each of these hears its own.
    const kind = `test ${++made}`
    this.store = new TestStore(kind, memory, env)
    this.holdfast = new Holdfast(this.store, { owner: 'code under test', ...rest, env })
    // Others begin to when somebody waits. Here a holder is to hear at once that its lock was taken away.
    this.holdfast['session'].listen()
    this.others = new Holdfast(new TestStore(`${kind}, others`, memory, env), { owner: 'others', env })
    this.log = new LockLog(kind)
  }

  /** Every time that the code under test had a lock, in order. */
  get history(): readonly LockRecord[] {
    return [...this.log.records]
  }

  /** Lets so much time pass, and everything happen that is due meanwhile. Milliseconds. */
  async advance(ms: number): Promise<void> {
    checkMs('ms', ms, { min: 0, max: MAX_MS })
    await this.driven('advance').advance(ms)
  }

  /** Lets as much time pass as the promise needs, and gives what it settles with. Throws when `within` (default: a minute) is not enough. */
  async until<T>(promise: Promise<T>, within: number = LONG_ENOUGH_MS): Promise<T> {
    checkMs('within', within, { min: 0, max: MAX_MS })
    return this.driven('until').until(promise, within)
  }

  /** Takes the lock from the code under test, which hears of it at once: as if somebody had released it by force. */
  lose(name: string): void {
    checkName(name)
    if (this.store.takeAway(name) === 0)
      this.log.fail(`"${name}" cannot be lost: the code under test does not hold it.`)
  }

  /** The store does what it is asked and answers so much later; of one name, or of all. Returns what ends it. */
  slow(by: number, name?: string): () => void {
    checkMs('by', by, { min: 1, max: MAX_MS })
    return this.fault({ kind: 'slow', by, name })
  }

  /** The store does not hear what it is asked, nor say anything; of one name, or of all. Returns what ends it. */
  down(name?: string): () => void {
    return this.fault({ kind: 'down', by: Infinity, name })
  }

  /** The code under test has the lock now. For a stub: is it called inside of the section? */
  assertHeld(name: string): void {
    checkName(name)
    if (!this.log.held.some((one) => one.name === name)) this.log.fail(`"${name}" is not held now.`)
  }

  /** The code under test had the lock at some time, or has it. */
  assertLocked(name: string): void {
    checkName(name)
    if (!this.log.records.some((one) => one.name === name)) this.log.fail(`"${name}" was never locked.`)
  }

  /** The code under test has given back all that it had. */
  assertNothingHeld(): void {
    const held = this.log.held.map(({ name }) => `"${name}"`)
    if (held.length > 0) this.log.fail(`Still held: ${held.join(', ')}.`)
  }

  /** Closes both programs at once, whatever they hold: for after each test. */
  async close(): Promise<void> {
    this.store.mend()
    const closed = Promise.all([this.holdfast.close({ drain: 0 }), this.others.close({ drain: 0 })])
    await (this.clock === null ? closed : this.clock.until(closed))
    this.log.stop()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  private fault(fault: Fault): () => void {
    if (fault.name !== undefined) checkName(fault.name)
    return this.store.fail(fault)
  }

  private driven(method: string): TestClock {
    if (this.clock !== null) return this.clock
    const message = `${method}() moves the test's own clock, and these locks go by the global one: move that, as in await vi.advanceTimersByTimeAsync(ms)`
    throw new InvalidArgumentError(message, { argument: 'time' })
  }
}
