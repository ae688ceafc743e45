import type { Violation } from './violation.ts'

/** What is heard of a client that should be silent: while it works, and after it was closed. */
export interface Noise {
  /** Rejections that nobody handled. */
  readonly rejections?: readonly unknown[]
  /** Warnings of the platform: too many listeners, timers that overflow. */
  readonly warnings?: readonly string[]
  /** Listeners on a signal that all acquires shared, when none is under way any more. */
  readonly listeners?: number
  /** Timers that would keep the process alive, after it was closed. */
  readonly timers?: number
  /** Requests that were sent although nobody wanted anything any more. */
  readonly requests?: number
}

/** Nothing in the background throws, warns, listens, ticks or asks when nobody wants anything. */
export function checkNoise(noise: Noise): Violation[] {
  const { rejections = [], warnings = [], listeners = 0, timers = 0, requests = 0 } = noise
  return [
    ...rejections.map((reason) => `a rejection was not handled: ${String(reason)}`),
    ...warnings.map((warning) => `a warning was given: ${warning}`),
    ...counted(listeners, 'listener', 'left on a signal'),
    ...counted(timers, 'timer', 'set after the end'),
    ...counted(requests, 'request', 'sent for nobody'),
  ].map((message) => ({ rule: 'noise', message }))
}

function counted(count: number, what: string, rest: string): string[] {
  if (count === 0) return []
  return [`${count} ${what}${count === 1 ? ' was' : 's were'} ${rest}`]
}
