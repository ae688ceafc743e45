import { openers } from '#openers'

import { checkOptions, said } from './core/arguments.ts'
import type { Store } from './core/contract.ts'
import { InvalidArgumentError } from './core/errors.ts'
import { redact } from './core/redact.ts'
import { Holdfast } from './locks/holdfast.ts'
import { OPTIONS } from './locks/options.ts'
import type { HoldfastOptions } from './locks/options.ts'
import type { Row, StoreOptions } from './openers/opener.ts'

export type { StoreOptions } from './openers/opener.ts'

export interface OpenOptions extends Omit<HoldfastOptions, 'closeStore'>, StoreOptions {}

/** The schemes that `open` understands. */
export const SCHEMES: readonly string[] = Object.keys(openers)

const schemeOf = (url: string): string | undefined => /^[a-z][a-z0-9+.-]*(?=:)/i.exec(url)?.[0].toLowerCase()

/** What opens this URL, if anything does. */
export function openerOf(url: string): Row {
  const scheme = schemeOf(url)
  const opener = scheme !== undefined && Object.hasOwn(openers, scheme) ? openers[scheme] : undefined
  if (opener !== undefined) return opener
  const problem =
    scheme === undefined ? 'has no scheme' : `has the scheme ${scheme}:, which no store answers to`
  throw new InvalidArgumentError(`The URL "${redact(url)}" ${problem}. Known: ${SCHEMES.join(', ')}.`, {
    argument: 'url',
  })
}

/** The store behind a URL. Whoever opens it closes it. */
export async function openStore(url: string, options: StoreOptions = {}, ttl?: number): Promise<Store> {
  const opener = openerOf(url)
  // A program has its credentials before it knows the URL.
  const { token, ca, ...others } = options
  const settings: StoreOptions = said(others)
  const known: readonly string[] = opener.options ?? []
  const foreign = Object.keys(settings).find((name) => !known.includes(name))
  if (foreign !== undefined) {
    const message = `The store behind ${schemeOf(url)}: has no option "${foreign}".`
    throw new InvalidArgumentError(message, { argument: foreign })
  }
  const open = await opener.load()
  return open(url, known.length > 0 ? settings : { token, ca }, ttl)
}

/** Options that only some stores have. */
const SETTINGS: readonly string[] = [
  ...new Set(Object.values(openers).flatMap(({ options = [] }) => options)),
]

/** Locks at the store behind a URL: `redis://localhost`, `memory:` … Closing the Holdfast closes the store too. */
export async function open(url: string, given: OpenOptions = {}): Promise<Holdfast> {
  checkOptions(given, [...OPTIONS.holdfast, 'token', 'ca', ...SETTINGS], 'ttl')
  const { token, ca, prefix, driver, fencing, replicas, replicaTimeout, ...options } = given
  const ofStore = { token, ca, prefix, driver, fencing, replicas, replicaTimeout }
  const store = await openStore(url, ofStore, options.ttl)
  try {
    return new Holdfast(store, { ...options, closeStore: true })
  } catch (error) {
    await store.close()
    throw error
  }
}
