import { backOff } from '../../core/back-off.ts'
import { TimeIsUp } from './client.ts'
import type { Call } from './client.ts'

// Taken once: a user's fake timers must not reach locks.
const { setTimeout } = globalThis

const PAUSE_MS = { first: 1, longest: 64 }

/** One after the other on a connection that cannot be replaced. Whoever's time is over when its turn comes sends nothing. */
export class Turns {
  private last: Promise<unknown> = Promise.resolve()

  take<T>(call: Call, work: () => Promise<T>): Promise<T> {
    const turn = this.last.then(() => {
      if (call.expired) throw new TimeIsUp()
      return work()
    })
    this.last = turn.catch(() => {})
    return turn
  }
}

/** Sends a statement that the server undid as a whole (deadlock, lock wait, serialization) again while there is time. */
export async function insisting<T>(
  call: Call,
  undone: (error: unknown) => boolean,
  send: () => Promise<T>,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    if (call.expired) throw new TimeIsUp()
    call.sending++
    try {
      return await send()
    } catch (error) {
      if (call.expired || !undone(error)) throw error
    } finally {
      call.sending--
    }
    await new Promise((resolve) => setTimeout(resolve, Math.random() * backOff(attempt, PAUSE_MS)))
  }
}
