import { performance as realPerformance } from 'node:perf_hooks'
import { setImmediate, setTimeout as realSetTimeout } from 'node:timers'

import { InvalidArgumentError } from '../core/errors.ts'
import { inBackground } from '../runtime/background.ts'
import { systemEnv } from '../runtime/env.ts'
import type { Env } from '../runtime/env.ts'
import { VirtualEnv } from '../testkit/virtual-env.ts'

/** Time passes when the test says so. What needs no time goes on by itself, so that a free lock can simply be awaited. */
export class TestClock extends VirtualEnv {
  private deferrals = 0

  override defer(callback: () => void): void {
    this.deferrals++
    setImmediate(() => {
      this.deferrals--
      callback()
    })
  }

  override async settle(): Promise<void> {
    do await super.settle()
    while (this.deferrals > 0)
  }
}

/**
 * The clocks and timers that are global at the moment: the system's, or the fake ones of a test runner. Its time goes on from where it was when
 * they are exchanged, for a fake clock begins at zero.
 */
export function globalClock(): Env {
  checkFakes()
  let source = globalThis.performance
  let offset = 0
  let last = source.now()
  const now = (): number => {
    if (source !== globalThis.performance) {
      source = globalThis.performance
      offset = last - source.now()
    }
    last = source.now() + offset
    return last
  }
  return {
    ...systemEnv,
    mono: now,
    // One time for all three: a test that sets the date has not put the machine to sleep.
    boot: now,
    wall: () => realPerformance.timeOrigin + now(),
    setTimer(callback, ms, background) {
      const { setTimeout, clearTimeout } = globalThis
      const timeout = inBackground(() => setTimeout(callback, ms))
      if (background) timeout.unref()
      return { cancel: () => clearTimeout(timeout) }
    },
    defer: (callback) => void inBackground(() => setImmediate(callback)),
  }
}

/** Timers that fire by one clock, and a clock that does not move with them: whatever waits would wait for ever. */
function checkFakes(): void {
  const { setTimeout, performance } = globalThis
  if (setTimeout === realSetTimeout || performance !== realPerformance) return
  throw new InvalidArgumentError(
    "The runner's fake timers leave out performance, so that no time would pass for locks. Fake it too: useFakeTimers() without a list, or with 'performance' in it. Those of node:test cannot: use new TestLocks(), whose clock the test moves",
    { argument: 'time' },
  )
}
