import { checkMs, checkOptions, MAX_MS } from '../core/arguments.ts'
import { shown } from '../core/printing.ts'
import type { Holdfast } from '../locks/holdfast.ts'
import { checkEnv, checkSignal } from '../locks/options.ts'
import { systemEnv } from '../runtime/env.ts'
import type { Env } from '../runtime/env.ts'
import { checkHoldfast } from './check-holdfast.ts'
import { pauseUnlessClosed } from './pause.ts'

/** Who leads, as the store has it. */
export interface LeaderInfo {
  /** What the leader's Holdfast was given as `owner`: host name and process id unless told otherwise. */
  readonly owner: string
  /** The fencing token of the term: larger than those of all terms before. */
  readonly token: bigint
  /** Milliseconds until the store takes the leader for dead unless it shows a sign of life. */
  readonly expiresIn: number
}

/** Who leads now, or null. An answer of a moment ago: it may be another one by the time it is read. */
export async function leaderOf(holdfast: Holdfast, name: string): Promise<LeaderInfo | null> {
  checkHoldfast(holdfast)
  const [holder] = (await holdfast.inspect(name)).holders
  if (holder === undefined) return null
  const { owner, token = 0n, expiresIn } = holder
  return shown({ owner, token, expiresIn })
}

export interface WatchLeaderOptions {
  /** Milliseconds between two looks. Default 1,000. */
  readonly every?: number | undefined
  /** Ends the watch. */
  readonly signal?: AbortSignal | undefined
  readonly env?: Env | undefined
}

const WATCH_OPTIONS: readonly (keyof WatchLeaderOptions)[] = ['every', 'signal', 'env']

/** Tells who leads, now and whenever that changes. Throws a StoreUnavailableError when the store cannot be asked. */
export async function* watchLeader(
  holdfast: Holdfast,
  name: string,
  options: WatchLeaderOptions = {},
): AsyncGenerator<LeaderInfo | null, void, undefined> {
  checkOptions(options, WATCH_OPTIONS, 'every')
  const { every = 1000, signal, env = systemEnv } = options
  checkMs('every', every, { min: 1, max: MAX_MS })
  checkHoldfast(holdfast)
  checkSignal(signal)
  checkEnv(env)
  let before: bigint | null | undefined
  while (signal?.aborted !== true) {
    const info = await leaderOf(holdfast, name)
    // The compiler cannot know that time has passed.
    if (signal?.aborted as boolean | undefined) return
    const token = info?.token ?? null
    if (token !== before) yield info
    before = token
    await pauseUnlessClosed(env, holdfast, every, signal)
  }
}
