import { AsyncLocalStorage } from 'node:async_hooks'

/** All that code can be inside of. */
const contexts: AsyncLocalStorage<unknown>[] = []

/** One more thing that code can be inside of, which `outside` leaves with the others. */
export function context<T>(): AsyncLocalStorage<T> {
  const made = new AsyncLocalStorage<T>()
  contexts.push(made as AsyncLocalStorage<unknown>)
  return made
}

/** Which locks the running code is inside of; what that means is the business of the layer above. */
export const sections: AsyncLocalStorage<unknown> = context()

/** Runs code that is inside of nothing, wherever it is called from. */
export function outside<T>(body: () => T): T {
  const inside = contexts.find((each) => each.getStore() !== undefined)
  return inside === undefined ? body() : inside.run(undefined, () => outside(body))
}
