/**
 * How what users hold looks in a log. Everything public has a `toJSON`, and an answer to `util.inspect`, that show plain facts:
 * no claim's id, no client, no bigint that JSON cannot write. They stand on prototypes and cost nothing until somebody prints.
 */

type Inspect = (value: unknown, options: object) => string
interface InspectOptions {
  readonly depth?: number | null
}

const INSPECT = Symbol.for('nodejs.util.inspect.custom')

/** Facts as JSON can write them. A token is a string there: most readers' numbers end at 2^53. */
export function plain(facts: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(facts).map(([key, value]) => [key, typeof value === 'bigint' ? String(value) : value]),
  )
}

/** A plain object that JSON can write although it has a bigint. */
export function shown<T extends object>(facts: T): T {
  return Object.defineProperty(facts, 'toJSON', { value: () => plain(facts) })
}

/** Has all objects of a class print as its label and these facts. */
export function printable<T extends object>(
  made: { readonly prototype: T },
  label: string,
  facts: (self: T) => object,
): void {
  printWith(made, {
    toJSON: (self) => plain(facts(self)),
    inspect: (self, options, inspect) => `${label} ${inspect(facts(self), options)}`,
    short: `[${label}]`,
  })
}

/** The two hooks themselves, for what prints in its own way. */
export function printWith<T extends object>(
  made: { readonly prototype: T },
  how: {
    readonly toJSON?: (self: T) => object
    readonly inspect: (self: T, options: object, inspect: Inspect) => string
    readonly short: string
  },
): void {
  const define = (key: string | symbol, value: unknown): unknown =>
    Object.defineProperty(made.prototype, key, { value, configurable: true, writable: true })
  const { toJSON, inspect: look, short } = how
  if (toJSON !== undefined) {
    define('toJSON', function (this: T) {
      return toJSON(this)
    })
  }
  define(INSPECT, function (this: T, depth: number, options: InspectOptions, inspect: Inspect) {
    if (depth < 0) return short
    const left = options.depth === null || options.depth === undefined ? options.depth : options.depth - 1
    return look(this, { ...options, depth: left }, inspect)
  })
}
