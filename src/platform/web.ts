import type { Channel, Context, Platform, Scope, Timeout } from './platform.ts'

// Taken once: a user's fake timers must not freeze a lease. What they give out is a number here.
const { setTimeout, clearTimeout, performance, console } = globalThis
const RANDOM_STEPS = 2 ** 32

const timers = new WeakMap<Timeout, unknown>()
const anywhere: Context<never> = { getStore: () => undefined, run: (_, body) => body() }
const here: Scope = { runInAsyncScope: (body) => body() }
const unheard: Channel<unknown> = { hasSubscribers: false, publish: () => undefined }

/** Without `node:` modules: browsers, and workers at the edge. There is nothing that a timer could keep alive. */
export const platform: Platform = {
  owner: () => `web:${platform.randomId().slice(0, 8)}`,
  // As good as the wall clock, which is looked at too.
  bootTime: () => performance.now(),
  randomId: () => base64url(globalThis.crypto.getRandomValues(new Uint8Array(16))),
  random: () => (globalThis.crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) / RANDOM_STEPS,
  setTimeout(callback, ms) {
    const timeout: Timeout = { ref: () => undefined, unref: () => undefined }
    timers.set(timeout, setTimeout(callback, ms))
    return timeout
  },
  clearTimeout: (timeout) => clearTimeout(timers.get(timeout) as number),
  setImmediate: (callback) => void setTimeout(callback, 0),
  warn: (message, { type, code, detail }) =>
    console.warn([`${type} [${code}]: ${message}`, ...(detail === undefined ? [] : [detail])].join('\n')),
  signals: new Map(),
  isMainThread: true,
  makeContext: () => anywhere,
  hasContexts: false,
  makeScope: () => here,
  channel: () => unheard,
}

function base64url(bytes: Uint8Array): string {
  const text = btoa(String.fromCharCode(...bytes))
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
