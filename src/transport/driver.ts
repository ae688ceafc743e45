import { createRequire } from 'node:module'

/**
 * A driver that is the user's to install; `undefined` if it is not. `has` is something that it exports.
 *
 * It is required first: all drivers are CommonJS, and to `import` such a package reads its files twice, 80 ms more for
 * `holdfast run`. `load` imports it, with the name written out for bundlers, which put the driver into the bundle
 * then. They leave out what is not installed only where the `import()` stands inside a `try`: `absent` is for its catch.
 */
export async function driver<M extends object>(
  name: string,
  has: keyof M & string,
  load: () => Promise<unknown>,
): Promise<M | undefined> {
  const module = (required(name) ?? (await load())) as M | { readonly default: M } | undefined
  return module === undefined || has in module
    ? (module as M | undefined)
    : (module as { default: M }).default
}

/** `undefined` too for what cannot be loaded this way: in a bundle it depends on where the bundle was put. */
export function required(name: string): unknown {
  try {
    // A bundle in CommonJS has no `import.meta`, and a module has no `__filename`.
    return createRequire((import.meta.url as string | undefined) ?? __filename)(name)
  } catch {
    return undefined
  }
}

/** `undefined` if it is the driver that is missing, and not something that the driver needs. */
export function absent(error: unknown, name: string): undefined {
  if (isMissing(error, name)) return undefined
  throw error
}

/** By its words: of Node, Bun, Deno and the bundlers not all have the same code, and some have none. */
function isMissing(error: unknown, name: string): boolean {
  const message = (error as Partial<Error> | undefined)?.message
  return typeof message === 'string' && NOT_FOUND.test(message) && namesOf(message).includes(name)
}

const NOT_FOUND = /\b(not found|cannot find|could not (find|resolve)|not a dependency)\b/i
/** The packages that are named: `mysql2` for "mysql2/promise". */
const namesOf = (message: string): string[] =>
  [...message.matchAll(/['"`]([\w-]+)[/'"`]/g)].map(([, name]) => name ?? '')
