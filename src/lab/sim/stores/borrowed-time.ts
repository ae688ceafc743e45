import { AsyncLocalStorage } from 'node:async_hooks'

import type { ProcessEnv } from '../process-env.ts'

/**
 * The quorum store takes clock and timers from the platform, once, when it is loaded, so that a user's fake timers cannot
 * stop a lease; a simulation has no other way to give it the time of a simulated process. Between `borrow` and
 * `giveBack` whoever is loaded gets clocks that ask in whose name they are read, and are the platform's own for
 * everybody outside a simulation.
 */

const inside = new AsyncLocalStorage<ProcessEnv>()
const { performance, setTimeout, clearTimeout } = globalThis
const own = { performance, setTimeout, clearTimeout }
let taken = false

interface Borrowed {
  readonly cancel: () => void
  unref(): void
}

const clock = { now: () => inside.getStore()?.clocks.mono() ?? own.performance.now() }

const setTimer = (callback: () => void, ms: number): Borrowed | ReturnType<typeof setTimeout> => {
  const env = inside.getStore()
  if (env === undefined) return own.setTimeout(callback, ms)
  const timer = env.setTimer(() => inside.run(env, callback), ms, true)
  return { cancel: () => timer.cancel(), unref: () => undefined }
}

const clearTimer = (timer: Borrowed | ReturnType<typeof setTimeout> | undefined): void => {
  if (timer !== undefined && 'cancel' in timer) timer.cancel()
  else own.clearTimeout(timer)
}

const lend = (): typeof clock => {
  taken = true
  return clock
}

/** Everything that this leads to happens on the clocks of that process. */
export function onTimeOf<T>(env: ProcessEnv, call: () => T): T {
  return inside.run(env, call)
}

/** Whether somebody took the clocks: not, if the quorum store had been loaded before. */
export function wasTaken(): boolean {
  return taken
}

function borrow(): void {
  Object.defineProperties(globalThis, {
    performance: { configurable: true, get: lend },
    setTimeout: { configurable: true, writable: true, value: setTimer },
    clearTimeout: { configurable: true, writable: true, value: clearTimer },
  })
}

export function giveBack(): void {
  for (const [key, value] of Object.entries(own)) {
    Object.defineProperty(globalThis, key, { configurable: true, writable: true, value })
  }
}

borrow()
