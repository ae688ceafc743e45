import type { Watch } from './contract.ts'

/**
 * For an answer that nobody waits for: if it is a promise, or a list or an object with promises in it that somebody forgot to wait for, the
 * failure of one would end the process.
 */
export function unheard(answer: unknown): void {
  try {
    const parts: unknown[] = Object.values(Object(answer) as object)
    for (const each of [answer, ...parts]) Promise.resolve(each).catch(() => {})
  } catch {
    // It cannot be read, and had no promise to show.
  }
}

/** Ends what a store tells. An async `stop` fits the contract's type: its failure comes later than any `catch` around the call. */
export function endWatch(watch: Watch, failed: (how: string, cause: unknown) => void = () => {}): void {
  try {
    Promise.resolve(watch.stop() as unknown).catch((cause: unknown) => failed('rejected', cause))
  } catch (cause) {
    failed('threw', cause)
  }
}
