import { platform } from '#platform'

import type { Context } from '../platform/platform.ts'

/** All that code can be inside of. */
const contexts: Context<unknown>[] = []

/** One more thing that code can be inside of, which `outside` leaves with the others. */
export function context<T>(): Context<T> {
  const made = platform.makeContext<T>()
  contexts.push(made as Context<unknown>)
  return made
}

/** Which locks the running code is inside of; what that means is the business of the layer above. */
export const sections: Context<unknown> = context()

/** Runs code that is inside of nothing, wherever it is called from. */
export function outside<T>(body: () => T): T {
  const inside = contexts.find((each) => each.getStore() !== undefined)
  return inside === undefined ? body() : inside.run(undefined, () => outside(body))
}
