import { setTimeout as sleep } from 'node:timers/promises'
import { MAX_MS } from '../core/arguments.ts'
import { StoreUnavailableError } from '../core/errors.ts'
import type { Holdfast } from '../locks/holdfast.ts'
import { connect, leave } from './connect.ts'
import { showDuration } from './duration.ts'
import { explain } from './exit.ts'
import type { LockWish } from './lock-option.ts'
import type { StoreAddress } from './store-option.ts'

const PAUSE_MS = { first: 100, longest: 1000 }

export interface Reach {
  readonly signal?: AbortSignal
  /** Told once, when the store is not there and is waited for. */
  readonly say: (text: string) => void
}

export interface Reached {
  readonly holdfast: Holdfast
  /** Milliseconds of the wait. */
  readonly spent: number
}

/**
 * Opens the store that a lock is wanted from. Whoever said how long to wait means the lock, whatever keeps it from being had:
 * a server that is being restarted, too. Who did not is told at once. What no time will change, such as a wrong
 * password, is told at once to everybody.
 */
export async function reach(address: StoreAddress, wish: LockWish, { signal, say }: Reach): Promise<Reached> {
  const began = performance.now()
  const spent = (): number => performance.now() - began
  const within = wish.patient ? wish.wait : 0
  let failure: Error | undefined
  for (let pause = PAUSE_MS.first; ; pause = Math.min(pause * 2, PAUSE_MS.longest)) {
    const attempt = connectNow(address, wish)
    try {
      // The first one may take as long as its store needs to say why: a group of servers is looked for for seconds.
      const holdfast =
        failure === undefined ? await attempt : await orGiveUp(attempt, failure, within - spent(), signal)
      return { holdfast, spent: spent() }
    } catch (error) {
      const left = within - spent()
      if (!mayPass(error) || left <= 0 || signal?.aborted === true) throw error
      if (failure === undefined)
        say(
          `${explain(error)}\n  trying again ${left === Infinity ? 'until it is there' : `for ${showDuration(left)}`}`,
        )
      failure = error
      await sleep(Math.min(pause, left), undefined, signal === undefined ? {} : { signal }).catch(() => {
        throw error
      })
    }
  }
}

/** A ZooKeeper store opens without its servers, and the runtime waits for them as for a lock: who does not wait is to hear it. */
async function connectNow(address: StoreAddress, { name, patient, wait }: LockWish): Promise<Holdfast> {
  const holdfast = await connect(address)
  if (holdfast.store.kind !== 'zookeeper' || (patient && wait > 0)) return holdfast
  try {
    await holdfast.inspect(name)
    return holdfast
  } catch (error) {
    // Who may not look may still take a lock.
    if (!mayPass(error)) return holdfast
    await leave(holdfast)
    throw error
  }
}

/** Fails as the attempt before did when the wait is over, or at the signal. What still comes of this one is left at once. */
function orGiveUp(
  attempt: Promise<Holdfast>,
  failure: Error,
  ms: number,
  signal?: AbortSignal,
): Promise<Holdfast> {
  return new Promise((resolve, reject) => {
    let over = false
    const giveUp = (): void => {
      over = true
      reject(failure)
    }
    const timer = setTimeout(giveUp, Math.min(ms, MAX_MS))
    signal?.addEventListener('abort', giveUp, { once: true })
    attempt
      .then((holdfast) => (over ? leave(holdfast) : resolve(holdfast)), reject)
      .finally(() => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', giveUp)
      })
      .catch(() => {})
  })
}

/** Asking again may help. */
export const mayPass = (error: unknown): error is StoreUnavailableError =>
  error instanceof StoreUnavailableError && error.retryable !== false
