import type { HoldfastError } from './errors.ts'
import { plain } from './printing.ts'

/**
 * Errors in a log. A driver's error may carry the request that failed, and with it a claim's id or a password: of a cause only
 * what is written in words is shown.
 */

const DEEPEST_CAUSE = 8

/** The facts of an error besides its name, message and cause. */
export function factsOf(error: HoldfastError): object {
  const { name: _, ...facts } = error
  return facts
}

/** Those that are being written. One that is its own cause, over however many others, is written once. */
const underWay = new Set<HoldfastError>()

export function errorJson(error: HoldfastError): Record<string, unknown> {
  const { name, message, code, cause } = error
  if (underWay.has(error)) return { name, message, code }
  underWay.add(error)
  try {
    const { outcome, ...facts } = factsOf(error) as { readonly outcome?: Outcome }
    return {
      name,
      message,
      ...plain(facts),
      // What the user's function returned may be anything, also what JSON cannot write.
      ...(outcome === undefined ? {} : { outcome: outcomeJson(outcome) }),
      ...(cause === undefined ? {} : { cause: causeJson(cause, 0) }),
    }
  } finally {
    underWay.delete(error)
  }
}

export function errorText(
  error: HoldfastError,
  options: object,
  inspect: (value: unknown, options: object) => string,
): string {
  const text = `${error.stack ?? String(error)} ${inspect(factsOf(error), options)}`
  return error.cause === undefined
    ? text
    : `${text}\n  [cause]: ${causeText(error.cause, options, inspect, 0)}`
}

/** What an error of a system or a driver may show of itself besides its words. */
const SHOWN = new Set(['stack', 'message', 'name', 'cause', 'code', 'errno', 'syscall', 'address', 'port'])

/**
 * A driver's error without what hangs on it: the command that failed, with the ids in its arguments, the statement, the client.
 * Most have nothing of that and stay what they are; of the others it is a copy of the same class.
 */
export function bare(cause: unknown): unknown {
  try {
    return stripped(cause, 0)
  } catch {
    // One of a stranger's store may throw when it is looked at: a revoked Proxy, a field that is made when it is read.
    return new Error('What was given as the cause cannot be read')
  }
}

function stripped(cause: unknown, depth: number): unknown {
  if (!isError(cause) || own(cause) || depth > DEEPEST_CAUSE) return cause
  const { message } = cause
  const deeper = stripped(cause.cause, depth + 1)
  if (deeper === cause.cause && Reflect.ownKeys(cause).every((key) => SHOWN.has(String(key)))) return cause
  const copy = Object.setPrototypeOf(new Error(message), Object.getPrototypeOf(cause) as object) as Error
  for (const key of SHOWN) {
    const described = Object.getOwnPropertyDescriptor(cause, key)
    if (described !== undefined && 'value' in described) Object.defineProperty(copy, key, described)
  }
  if (cause.stack !== undefined) copy.stack = cause.stack
  if (deeper !== undefined) Object.defineProperty(copy, 'cause', { value: deeper, configurable: true })
  return copy
}

interface Outcome {
  readonly status: string
  readonly reason?: unknown
}

function outcomeJson({ status, reason }: Outcome): object {
  return reason === undefined ? { status } : { status, reason: causeJson(reason, 0) }
}

function causeJson(cause: unknown, depth: number): unknown {
  if (!isError(cause)) return inWords(cause)
  if (own(cause)) return cause.toJSON()
  const { name, message } = cause
  const { code } = cause as { readonly code?: unknown }
  const deeper = depth < DEEPEST_CAUSE && cause.cause !== undefined
  return {
    name,
    message,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(deeper ? { cause: causeJson(cause.cause, depth + 1) } : {}),
  }
}

function causeText(
  cause: unknown,
  options: object,
  inspect: (value: unknown, options: object) => string,
  depth: number,
): string {
  if (!isError(cause)) return inWords(cause)
  if (own(cause)) return inspect(cause, options)
  const text = cause.stack ?? String(cause)
  if (cause.cause === undefined || depth >= DEEPEST_CAUSE) return text
  return `${text}\n  [cause]: ${causeText(cause.cause, options, inspect, depth + 1)}`
}

const ELSEWHERE = new Set(['[object Error]', '[object DOMException]'])

/** Also one of another realm: in Jest, what Node itself throws is no `Error` of the program's. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || ELSEWHERE.has(Object.prototype.toString.call(value))
}

/** One of ours, of this copy of the package or another. */
function own(error: Error): error is Error & { toJSON(): object } {
  return Symbol.for('holdfast.error.ANY') in error && 'toJSON' in error
}

function inWords(value: unknown): string {
  if (typeof value === 'object' || typeof value === 'function') return Object.prototype.toString.call(value)
  return String(value as string | number | bigint | boolean | symbol | undefined)
}

interface Revivable {
  readonly message: string
  readonly code: string
  readonly token?: unknown
  readonly cause?: unknown
}

type Details = Record<string, unknown>
type Make = (code: string) => (new (message: string, details: Details) => Error) | undefined

/** The way back, or null for what is none of ours. */
export function revive(json: unknown, classOf: Make): Error | null {
  if (isError(json) && own(json)) return json
  const made = isRevivable(json) ? classOf(json.code) : undefined
  if (!isRevivable(json) || made === undefined) return null
  const { message, token, cause, ...facts } = json
  return new made(message, {
    ...facts,
    ...(typeof token === 'string' && /^\d+$/.test(token) ? { token: BigInt(token) } : {}),
    ...(cause === undefined ? {} : { cause: reviveCause(cause, classOf) }),
  })
}

function reviveCause(cause: unknown, classOf: Make): unknown {
  const ours = revive(cause, classOf)
  if (ours !== null) return ours
  if (typeof cause !== 'object' || cause === null || !('message' in cause)) return cause
  const { message, name, code, cause: deeper } = cause as Details
  const error = new Error(String(message))
  if (deeper !== undefined) error.cause = reviveCause(deeper, classOf)
  return Object.assign(error, { name: String(name), ...(code === undefined ? {} : { code }) })
}

function isRevivable(value: unknown): value is Revivable {
  return (
    typeof value === 'object' &&
    value !== null &&
    'code' in value &&
    typeof value.code === 'string' &&
    'message' in value &&
    typeof value.message === 'string'
  )
}
