import { openers } from '#openers'

import { checkOptions } from './core/arguments.ts'
import type { Store } from './core/contract.ts'
import { InvalidArgumentError } from './core/errors.ts'
import { redact } from './core/redact.ts'
import { Holdfast } from './locks/holdfast.ts'
import { OPTIONS } from './locks/options.ts'
import type { HoldfastOptions } from './locks/options.ts'
import type { StoreOptions } from './openers/opener.ts'

export type { StoreOptions } from './openers/opener.ts'

export interface OpenOptions extends Omit<HoldfastOptions, 'closeStore'>, StoreOptions {}

/** The schemes that `open` understands. */
export const SCHEMES: readonly string[] = Object.keys(openers)

/** The store behind a URL. Whoever opens it closes it. */
export async function openStore(url: string, options: StoreOptions = {}, ttl?: number): Promise<Store> {
  const scheme = /^[a-z][a-z0-9+.-]*(?=:)/i.exec(url)?.[0].toLowerCase()
  const opener = scheme !== undefined && Object.hasOwn(openers, scheme) ? openers[scheme] : undefined
  if (opener === undefined) {
    const problem =
      scheme === undefined ? 'has no scheme' : `has the scheme ${scheme}:, which no store answers to`
    throw new InvalidArgumentError(`The URL "${redact(url)}" ${problem}. Known: ${SCHEMES.join(', ')}.`, {
      argument: 'url',
    })
  }
  const open = await opener()
  return open(url, options, ttl)
}

/** What stores are told in their URL, and what is looked for here. */
const IN_URL = Object.fromEntries(
  ['prefix', 'driver', 'fencing', 'replicas', 'replicaTimeout'].map((name) => [
    name,
    `It belongs to the URL of a store that has it: ?${name}=…`,
  ]),
)

/** Locks at the store behind a URL: `redis://localhost`, `memory:` … Closing the Holdfast closes the store too. */
export async function open(url: string, given: OpenOptions = {}): Promise<Holdfast> {
  checkOptions(given, [...OPTIONS.holdfast, 'token', 'ca'], 'ttl', IN_URL)
  const { token, ca, ...options } = given
  const store = await openStore(url, { token, ca }, options.ttl)
  try {
    return new Holdfast(store, { ...options, closeStore: true })
  } catch (error) {
    await store.close()
    throw error
  }
}
