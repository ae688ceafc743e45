import type { Unknown } from '../../core/contract.ts'
import { unknown, unknownForGood } from '../../core/unknown.ts'
import { isPlausible } from '../holdfast/plausible.ts'
import { RefusedError } from '../holdfast/refused.ts'
import { WRITE_HEADER } from '../holdfast/wire.ts'
import type { KEEP_PATH, OPERATIONS_PATH } from '../holdfast/wire.ts'

/** As much of `fetch` as is used here: that of the platform, or what a worker is bound to. */
export type Fetch = (
  url: string,
  request: {
    readonly method: 'POST'
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
    readonly signal: AbortSignal
    readonly redirect: 'manual'
  },
) => Promise<Response>

export interface Endpoint {
  /** Without a slash at its end. */
  readonly base: string
  readonly token: string | undefined
  readonly fetch: Fetch
}

/** The most that is read of an answer, in bytes. */
const LONGEST = 16 * 1024 * 1024
const LONGEST_REFUSAL = 16 * 1024
/** Asking again may help. */
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504])
const NOT_THERE = new Set([404, 405, 501])

/** What the server says, as it came, or why there is no answer. Never rejects, and does not outlast the signal, whatever `fetch` makes of it. */
export async function post(
  endpoint: Endpoint,
  path: Parameters<typeof ask>[1],
  body: unknown,
  signal: AbortSignal,
): Promise<unknown> {
  let stop = (): void => undefined
  const late = new Promise<unknown>((resolve) => {
    stop = () => resolve(unknown(new Error(LATE)))
  })
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    return await Promise.race([ask(endpoint, path, body, signal), late])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

async function ask(
  { base, token, fetch }: Endpoint,
  path: typeof OPERATIONS_PATH | typeof KEEP_PATH | '/v1/watch',
  body: unknown,
  signal: AbortSignal,
): Promise<unknown> {
  const headers = {
    'content-type': 'application/json',
    [WRITE_HEADER]: '1',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  }
  try {
    // Nowhere else: the token is for this server.
    const request = {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
      signal,
      redirect: 'manual',
    } as const
    const response = await fetch(`${base}${path}`, request)
    if (!response.ok) return refusalOf(response.status, await textOf(response, LONGEST_REFUSAL))
    const text = await textOf(response, LONGEST)
    if (text === null || !isPlausible(text, 'inspect')) return unknown(new Error(NONSENSE))
    const said: unknown = JSON.parse(text)
    return typeof said === 'object' && said !== null ? said : unknown(new Error(NONSENSE))
  } catch (cause) {
    return unknown(signal.aborted ? new Error(LATE) : cause)
  }
}

const LATE = 'The lock server did not answer in time'
const NONSENSE = 'The lock server gave an answer that is none'

/** Null for what is too long: a server that never ends would fill the memory. */
async function textOf({ body }: Response, most: number): Promise<string | null> {
  if (body === null) return ''
  const reader = (body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (let left = most; ;) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    left -= value.byteLength
    if (left < 0) {
      await reader.cancel()
      return null
    }
    text += decoder.decode(value, { stream: true })
  }
}

function refusalOf(status: number, text: string | null): Unknown {
  const { code, message } = errorIn(text)
  const words = message ?? wordsFor(status)
  const retryable = PASSING.has(status)
  const cause = new RefusedError(words, { retryable, code })
  return retryable ? unknown(cause) : unknownForGood(cause)
}

function wordsFor(status: number): string {
  if (NOT_THERE.has(status))
    return `There is no lock server at this address, or an old one (status ${status}).`
  return `The lock server's address answered with status ${status}, and not as a lock server does.`
}

function errorIn(text: string | null): { readonly code?: string; readonly message?: string } {
  try {
    const { error } = JSON.parse(text ?? '') as {
      readonly error?: { readonly code?: unknown; readonly message?: unknown }
    }
    const { code, message } = error ?? {}
    return typeof code === 'string' && typeof message === 'string' ? { code, message } : {}
  } catch {
    return {}
  }
}
