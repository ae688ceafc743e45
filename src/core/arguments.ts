import { InvalidArgumentError } from './errors.ts'

/** Checks of what users pass in. All of them run before a store is touched. */

export const MAX_NAME_BYTES = 512
/** Timers cannot wait longer: beyond this they fire at once. */
export const MAX_MS: number = 2 ** 31 - 1
/** For what no timer waits for: a century. */
export const MAX_PERIOD_MS: number = 36_525 * 86_400_000

function refuse(argument: string, problem: string, value: unknown): never {
  throw new InvalidArgumentError(`${argument} ${problem}; got ${show(value)}`, { argument })
}

function show(value: unknown): string {
  if (typeof value !== 'string')
    return typeof value === 'object' && value !== null ? 'an object' : String(value)
  return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
}

// eslint-disable-next-line no-control-regex -- control characters are what this looks for
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/

const LONE_SURROGATE = /\p{Surrogate}/u

export function checkName(name: unknown): asserts name is string {
  if (typeof name !== 'string') refuse('name', 'must be a string', name)
  if (name.length === 0) refuse('name', 'must not be empty', name)
  if (CONTROL.test(name)) refuse('name', 'must not contain control characters', name)
  if (LONE_SURROGATE.test(name))
    refuse('name', 'must be well-formed Unicode (it has half of a surrogate pair)', name)
  // A UTF-16 unit is at most three bytes of UTF-8, so most names need no counting.
  if (name.length * 3 > MAX_NAME_BYTES && utf8Length(name) > MAX_NAME_BYTES) {
    refuse('name', `must be at most ${MAX_NAME_BYTES} bytes of UTF-8`, name)
  }
}

function utf8Length(text: string): number {
  let bytes = 0
  for (const char of text) {
    const point = char.codePointAt(0) ?? 0
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4
  }
  return bytes
}

export interface Range {
  readonly min: number
  readonly max: number
}

/** A whole number of milliseconds within a range. */
export function checkMs(argument: string, value: unknown, { min, max }: Range): asserts value is number {
  checkWhole(argument, value, { min, max: Math.min(max, MAX_MS) }, ' milliseconds')
}

/** A whole number of milliseconds from 1 on, of which somebody else keeps the time. */
export function checkPeriod(argument: string, value: unknown): asserts value is number {
  checkWhole(argument, value, { min: 1, max: MAX_PERIOD_MS }, ' milliseconds')
}

export function checkWhole(
  argument: string,
  value: unknown,
  { min, max }: Range,
  unit = '',
): asserts value is number {
  if (typeof value !== 'number' || !Number.isInteger(value))
    refuse(argument, `must be a whole number${unit && ` of${unit}`}`, value)
  if (value < min || value > max) refuse(argument, `must be between ${min} and ${max}${unit}`, value)
}

/** Like `checkMs`, and Infinity means "for ever". */
export function checkWait(argument: string, value: unknown): asserts value is number {
  if (value !== Infinity) checkMs(argument, value, { min: 0, max: MAX_MS })
}

/** What is undefined was not said. */
export function checkBoolean(argument: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'boolean') refuse(argument, 'must be true or false', value)
}

export function checkFunction(argument: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function') refuse(argument, 'must be a function', value)
}

export function checkText(argument: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'string') refuse(argument, 'must be a string', value)
}

/**
 * An object with no keys but the known ones. `first` is what a bare number was most likely meant for; `elsewhere` says where an
 * option belongs that is none of this call's.
 */
export function checkOptions(
  options: object,
  known: readonly string[],
  first: string,
  elsewhere: Readonly<Record<string, string>> = {},
): void {
  if (typeof options !== 'object' || options === null) {
    const given = options as unknown
    const meant =
      typeof given === 'number' || typeof given === 'string' ? `: pass { ${first}: ${show(given)} }` : ''
    const message = `options must be an object${meant}; got ${show(given)}`
    throw new InvalidArgumentError(message, { argument: 'options' })
  }
  const other = otherThing(options)
  if (other !== undefined)
    throw new InvalidArgumentError(`options must be an object; got ${other}`, { argument: 'options' })
  for (const key in options) if (!known.includes(key)) throw unknownOption(key, known, elsewhere[key])
}

/** Objects that have no options in them, whatever they were meant to say: all would be as if nothing had been said. */
function otherThing(options: object): string | undefined {
  if (typeof (options as { readonly then?: unknown }).then === 'function') return 'a promise: await it'
  if (options instanceof Map) return 'a Map: pass Object.fromEntries(map)'
  return Array.isArray(options) ? 'an array' : undefined
}

function unknownOption(
  key: string,
  known: readonly string[],
  elsewhere: string | undefined,
): InvalidArgumentError {
  const near = nearest(key, known)
  const hint =
    near === undefined ? (elsewhere ?? `Known are ${known.join(', ')}.`) : `Did you mean "${near}"?`
  return new InvalidArgumentError(`There is no option ${show(key)} here. ${hint}`, { argument: key })
}

/** Without those that are undefined: they are as good as none, also where options are laid over others. */
export function said<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
}

/** What was probably meant: the nearest, if it is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let [best, fewest] = [undefined as string | undefined, MOST_SLIPS + 1]
  for (const each of known) {
    const most = Math.min(MOST_SLIPS, Math.floor(Math.max(word.length, each.length) / 2))
    const slips = slipsBetween(word.toLowerCase(), each.toLowerCase())
    if (slips <= most && slips < fewest) [best, fewest] = [each, slips]
  }
  return best
}

const MOST_SLIPS = 2

/** Slips of the finger: a letter too many, too few, another one, or two in the wrong order. */
function slipsBetween(a: string, b: string): number {
  let [before, row] = [[] as number[], Array.from({ length: b.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let steps = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        steps = Math.min(steps, (before[j - 2] ?? 0) + 1)
      next.push(steps)
    }
    ;[before, row] = [row, next]
  }
  return row[b.length] ?? 0
}
