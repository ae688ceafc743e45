import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import { randomBytes, randomInt } from 'node:crypto'
import { channel } from 'node:diagnostics_channel'
import { constants, hostname, uptime } from 'node:os'
import { isMainThread } from 'node:worker_threads'

import type { Platform, Timeout } from './platform.ts'

// Taken once: a user's fake timers must not freeze a lease.
const { setTimeout, clearTimeout, setImmediate } = globalThis
const RANDOM_STEPS = 2 ** 32

/** Node, Bun and Deno. */
export const platform: Platform = {
  owner: () => `${hostname()}:${process.pid}`,
  bootTime: () => uptime() * 1000,
  randomId: () => randomBytes(16).toString('base64url'),
  random: () => randomInt(RANDOM_STEPS) / RANDOM_STEPS,
  setTimeout: (callback, ms): Timeout => setTimeout(callback, ms),
  clearTimeout: (timeout) => clearTimeout(timeout as NodeJS.Timeout),
  setImmediate: (callback) => void setImmediate(callback),
  warn: (message, details) => process.emitWarning(message, details),
  signals: new Map(Object.entries(constants.signals)),
  isMainThread,
  makeContext: <T>() => new AsyncLocalStorage<T>(),
  hasContexts: true,
  makeScope: (type) => new AsyncResource(type, { requireManualDestroy: true }),
  channel,
}
