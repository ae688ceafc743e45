import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { HoldfastError, StoreUnavailableError } from '../core/errors.ts'
import type { Store } from '../core/contract.ts'
import { parseAddress } from '../stores/holdfast/address.ts'
import { storeAt } from './connect.ts'
import { CommandError, EXIT } from './exit.ts'
import type { StoreAddress } from './store-option.ts'

/** Whom a lock was taken from. */
export interface Taken {
  readonly owner: string
  readonly token: string
}

const ANSWER_MS = 5000

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

interface ServerAnswer {
  readonly revoked?: readonly Taken[]
  readonly error?: { readonly code: string; readonly message: string }
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
    timeout: ANSWER_MS,
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
    const request = send(options, (response) => {
      let all = ''
      response.setEncoding('utf8').on('data', (part) => (all += String(part)))
      response.on('end', () => resolve(all))
    })
    request.on('timeout', () => request.destroy(new Error('no answer in time')))
    request.on('error', (cause) =>
      reject(new StoreUnavailableError('The lock server did not answer.', { store: 'holdfast', cause })),
    )
    request.end(body)
  })
  const { revoked, error } = JSON.parse(text) as ServerAnswer
  if (revoked !== undefined) return revoked
  if (error?.code === 'NOT_HELD') return []
  throw refusal(error?.code ?? '', error?.message ?? 'The lock server refused.')
}

function refusal(code: string, message: string): Error {
  if (code === 'FORBIDDEN' || code === 'UNAUTHENTICATED') return new CommandError(message, EXIT.noPermission)
  return code.endsWith('UNAVAILABLE') || code === 'STARTING' || code === 'STOPPING'
    ? new StoreUnavailableError(message, { store: 'holdfast' })
    : new HoldfastError('INVALID_ARGUMENT', message)
}
