import { AsyncLocalStorage } from 'node:async_hooks'

/** Which locks the running code is inside of; what that means is the business of the layer above. */
export const sections: AsyncLocalStorage<unknown> = new AsyncLocalStorage<unknown>()

/** Runs code that is inside of no section, wherever it is called from. */
export function outside<T>(body: () => T): T {
  return sections.getStore() === undefined ? body() : sections.run(undefined, body)
}
