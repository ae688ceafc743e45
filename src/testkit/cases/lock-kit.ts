import type { NameInfo, Unknown } from '../../core/contract.ts'
import type { ErrorCode } from '../../core/errors.ts'
import { Holdfast } from '../../locks/holdfast.ts'
import type { Lock, Semaphore } from '../../locks/lock.ts'
import type { HoldfastOptions, PermitOptions } from '../../locks/options.ts'
import type { Env } from '../../runtime/env.ts'
import type { Lease } from '../../runtime/lease.ts'
import type { CaseContext } from '../case.ts'
import { checkLeftovers } from '../checkers/leftovers.ts'
import { assertNone } from '../checkers/violation.ts'
import { nanoseconds, Recorder } from '../history.ts'
import type { ClaimShape } from '../history.ts'

const TTL_MS = 5000
const TIMEOUT_MS = 10_000

/** A process of its own as far as the store can tell. Closed after the case. */
export async function openHoldfast(ctx: CaseContext, options: HoldfastOptions = {}): Promise<Holdfast> {
  const holdfast = new Holdfast(await ctx.createStore(), { env: ctx.env, ttl: ctx.ttl(TTL_MS), ...options })
  ctx.cleanup(() => holdfast.close({ drain: 0 }))
  return holdfast
}

export async function openHoldfasts(
  ctx: CaseContext,
  options: HoldfastOptions = {},
): Promise<[Holdfast, Holdfast, Holdfast]> {
  return [
    await openHoldfast(ctx, options),
    await openHoldfast(ctx, options),
    await openHoldfast(ctx, options),
  ]
}

/** What an error is compared with: its stable code. */
export function code(value: ErrorCode): { readonly code: ErrorCode } {
  return { code: value }
}

/** A promise that is waited for later: until then its rejection is nobody's surprise. */
export function expected<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

/** A name as the store itself shows it. */
export async function inspect(holdfast: Holdfast, name: string): Promise<NameInfo> {
  const info: NameInfo | Unknown = await holdfast.store.inspect(name, TIMEOUT_MS)
  if ('kind' in info) throw new Error('the store did not answer', { cause: info.cause })
  return info
}

/** Resolves once somebody waits for the name at the store, or, without a queue there, has had the time to ask. */
export async function somebodyWaits(
  ctx: CaseContext,
  holdfast: Holdfast,
  name: string,
  count = 1,
): Promise<void> {
  if (!ctx.capabilities.queue) return ctx.sleep(50)
  await ctx.eventually(`${count} wait`, async () => (await inspect(holdfast, name)).waiters.length === count)
}

/** Nobody holds a name or waits for it any more, and the backend keeps nothing for it. What happens in the background may take its time. */
export async function assertNothingLeft(ctx: CaseContext, holdfast: Holdfast, name: string): Promise<void> {
  const remains = async (): Promise<ReturnType<typeof checkLeftovers>> => {
    const backend = (await ctx.leftovers()).filter((what) => what.includes(name))
    return checkLeftovers({ names: [await inspect(holdfast, name)], backend })
  }
  await ctx.eventually('nothing is left', async () => (await remains()).length === 0).catch(() => undefined)
  assertNone(await remains())
}

/** Takes the lock, runs the body, releases, and writes all of it down. */
export async function record<T>(
  recorder: Recorder,
  lock: Lock | Semaphore,
  body: (lease: Lease) => Promise<T>,
  { permits, ...shape }: ClaimShape & Pick<PermitOptions, 'permits'> = {},
): Promise<T> {
  const story = recorder.acquire(lock.name, permits === undefined ? shape : { ...shape, weight: permits })
  const options: PermitOptions = { wait: Infinity, ...(permits === undefined ? {} : { permits }) }
  const lease = await lock.acquire(options)
  story.acquired(lease)
  try {
    return await body(lease)
  } finally {
    story.check(lease)
    story.releasing()
    story.released(await lease.release())
  }
}

export function recorder(ctx: CaseContext, process: string): Recorder {
  return new Recorder(process, { now: () => nanoseconds(ctx.env.mono()) })
}

/** The same world, but for a wall clock that can be set. */
export function settableWall(env: Env): { readonly env: Env; set(ms: number): void } {
  let ahead = 0
  return {
    env: {
      mono: () => env.mono(),
      boot: () => env.boot(),
      wall: () => env.wall() + ahead,
      setTimer: (callback, ms, background) => env.setTimer(callback, ms, background),
      defer: (callback) => env.defer(callback),
      randomId: () => env.randomId(),
      random: () => env.random(),
    },
    set: (ms) => void (ahead += ms),
  }
}
