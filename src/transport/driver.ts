import { createRequire } from 'node:module'

import { DriverMissingError } from '../core/errors.ts'

export interface Driver<M extends object> {
  /** What is loaded, `mysql2/promise`. */
  readonly module: string
  /** Something that it exports. */
  readonly has: keyof M & string
  /** The oldest version that works, `[major, minor]`. The installer lets every one through: it may be there for others. */
  readonly oldest: readonly [number, number]
  /**
   * Imports it, with the name written out for bundlers, which put the driver into the bundle then. They leave out what is
   * not installed only where the `import()` stands inside a `try`; `absent` is for its catch.
   */
  readonly load: () => Promise<unknown>
}

/**
 * A driver that is the user's to install; `undefined` if it is not. It is required first: all drivers are CommonJS, and to
 * `import` such a package reads its files twice, 80 ms more for `holdfast run`.
 */
export async function driver<M extends object>(wanted: Driver<M>): Promise<M | undefined> {
  const { module: name, has, oldest, load } = wanted
  const [bare = ''] = name.split('/')
  const manifest = required(`${bare}/package.json`) as { readonly version?: string } | undefined
  if (manifest?.version !== undefined && isOlder(manifest.version, oldest)) {
    throw new DriverMissingError(
      `The package ${bare} is installed as ${manifest.version}, and ${oldest.join('.')} is the oldest that works: npm install ${bare}@latest`,
    )
  }
  const module = (required(name) ?? (await load())) as M | { readonly default: M } | undefined
  return module === undefined || has in module
    ? (module as M | undefined)
    : (module as { default: M }).default
}

function isOlder(version: string, [major, minor]: readonly [number, number]): boolean {
  const [here = 0, below = 0] = version.split('.', 2).map(Number)
  return here < major || (here === major && below < minor)
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
