import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { HoldfastError, StoreUnavailableError } from '../core/errors.ts'
import type { Store } from '../core/contract.ts'
import { parseAddress } from '../stores/holdfast/url.ts'
import { storeAt } from './connect.ts'
import { CommandError, EXIT } from './exit.ts'
import type { StoreAddress } from './store-option.ts'

/** Whom a lock was taken from. */
export interface Taken {
  readonly owner: string
  readonly token: string
}

const ANSWER_MS = 5000
/** Characters: of two hundred thousand readers. */
const LONGEST_ANSWER = 32 * 1024 * 1024
const LONGEST_WORDS = 500
const NO_SERVER = 'What answers there is no lock server of this version.'

/** Takes a name from whoever holds it. A lock server does it itself, for it knows who may and keeps a record of why. */
export async function forceRelease(
  address: StoreAddress,
  name: string,
  reason: string,
): Promise<readonly Taken[]> {
  if (/^holdfasts?(\+unix)?:/i.test(address.url)) return askServer(address, name, reason)
  const store = await storeAt(address)
  try {
    return await takeAway(store, name)
  } finally {
    await store.close()
  }
}

async function takeAway(store: Store, name: string): Promise<readonly Taken[]> {
  const unanswered = (cause: unknown): StoreUnavailableError =>
    new StoreUnavailableError(`The ${store.kind} store did not answer; "${name}" may still be held.`, {
      cause,
    })
  const info = await store.inspect(name, ANSWER_MS)
  if ('kind' in info) throw unanswered(info.cause)
  const taken: Taken[] = []
  for (const { id, owner, token } of info.holders) {
    // Withdrawn, not released: a copy of the holder's request that is still under way must not bring it back.
    const answer = await store.withdraw({ name, id }, ANSWER_MS)
    if (answer.kind === 'unknown') throw unanswered(answer.cause)
    if (answer.kind === 'released') taken.push({ owner, token: String(token ?? '') })
  }
  return taken
}

async function askServer(
  { url, token, ca }: StoreAddress,
  name: string,
  reason: string,
): Promise<readonly Taken[]> {
  const { address, token: inUrl } = parseAddress(url)
  const secret = token ?? inUrl
  const body = JSON.stringify({ name, reason })
  const options = {
    ...(address.kind === 'unix' ? { socketPath: address.path } : { host: address.host, port: address.port }),
    method: 'POST',
    path: '/v1/force-release',
    ...(ca === undefined ? {} : { ca }),
    headers: {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'holdfast-request': '1',
      ...(address.kind === 'unix' ? { host: 'localhost' } : {}),
      ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
    },
  }
  const send = address.kind === 'tcp' && address.tls ? httpsRequest : httpRequest
  const text = await new Promise<string>((resolve, reject) => {
    const fail = (cause: unknown): void => reject(unavailable('The lock server did not answer.', cause))
    const request = send(options, (response) => {
      let all = ''
      response.setEncoding('utf8').on('data', (part) => {
        all += String(part)
        if (all.length > LONGEST_ANSWER) request.destroy(new Error('an answer without an end'))
      })
      response.on('end', () => (response.complete ? resolve(all) : fail(new Error('half an answer'))))
      // Cut off in the middle there is no end.
      response.on('error', fail)
      response.on('close', () => fail(new Error('half an answer')))
    })
    // For all of it: what drips is never silent for long.
    const timer = setTimeout(() => request.destroy(new Error('no answer in time')), ANSWER_MS)
    request.on('error', fail)
    request.on('close', () => clearTimeout(timer))
    request.end(body)
  })
  return takenOf(text)
}

/** What answers may be another program, or a proxy: exactly what a lock server says is taken. */
function takenOf(text: string): readonly Taken[] {
  const { revoked, error } = fieldsOf(parsed(text))
  const { code, message } = fieldsOf(error)
  if (code === 'NOT_HELD') return []
  if (typeof code === 'string' && typeof message === 'string')
    throw refusal(code, message.slice(0, LONGEST_WORDS))
  if (!Array.isArray(revoked)) throw unavailable(NO_SERVER)
  return revoked.map((one: unknown) => {
    const { owner, token } = fieldsOf(one)
    if (typeof owner !== 'string' || typeof token !== 'string') throw unavailable(NO_SERVER)
    return { owner, token }
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}

const unavailable = (message: string, cause?: unknown): StoreUnavailableError =>
  new StoreUnavailableError(message, { store: 'holdfast', cause })

function refusal(code: string, message: string): Error {
  if (code === 'FORBIDDEN' || code === 'UNAUTHENTICATED') return new CommandError(message, EXIT.noPermission)
  return code.endsWith('UNAVAILABLE') || code === 'STARTING' || code === 'STOPPING'
    ? unavailable(message)
    : new HoldfastError('INVALID_ARGUMENT', message)
}
