import { setTimeout as sleep } from 'node:timers/promises'
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
  for (let pause = PAUSE_MS.first, said = false; ; pause = Math.min(pause * 2, PAUSE_MS.longest)) {
    try {
      return { holdfast: await connectNow(address, wish), spent: spent() }
    } catch (error) {
      const left = within - spent()
      if (!mayPass(error) || left <= 0 || signal?.aborted === true) throw error
      if (!said)
        say(
          `${explain(error)}\n  trying again ${left === Infinity ? 'until it is there' : `for ${showDuration(left)}`}`,
        )
      said = true
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

const mayPass = (error: unknown): boolean =>
  error instanceof StoreUnavailableError && error.retryable !== false
