import type { Store } from './core/contract.ts'
import { InvalidArgumentError } from './core/errors.ts'
import { redact } from './core/redact.ts'
import { Holdfast } from './locks/holdfast.ts'
import type { CloseOptions } from './locks/holdfast.ts'
import type { HoldfastOptions } from './locks/options.ts'

export { redact }

export interface StoreOptions {
  /** The bearer token for a lock server. Better here, read from a file, than in the URL. */
  readonly token?: string
}

export interface OpenOptions extends HoldfastOptions, StoreOptions {}

type Opener = (url: string, options: StoreOptions) => Promise<Store>

/** One row a scheme. A store and its driver are loaded when a URL asks for them, and not before. */
const OPENERS: Readonly<Record<string, () => Promise<Opener>>> = {
  memory: async () => {
    const { memoryStore } = await import('./stores/memory/index.ts')
    return () => Promise.resolve(memoryStore())
  },
  holdfast: openHoldfast,
  holdfasts: openHoldfast,
  'holdfast+unix': openHoldfast,
}

async function openHoldfast(): Promise<Opener> {
  return (await import('./stores/holdfast/open.ts')).openHoldfastStore
}

/** The schemes that `open` understands. */
export const SCHEMES: readonly string[] = Object.keys(OPENERS)

/** The store behind a URL. Whoever opens it closes it. */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  const scheme = /^[a-z][a-z0-9+.-]*(?=:)/i.exec(url)?.[0].toLowerCase()
  const opener = scheme === undefined ? undefined : OPENERS[scheme]
  if (opener === undefined) {
    const problem = scheme === undefined ? 'has no scheme' : `has the scheme ${scheme}:, which no store answers to`
    throw new InvalidArgumentError(`The URL "${redact(url)}" ${problem}. Known: ${SCHEMES.join(', ')}.`, {
      argument: 'url',
    })
  }
  const open = await opener()
  return open(url, options)
}

/** Locks at the store behind a URL: `redis://localhost`, `memory:` … Closing the Holdfast closes the store too. */
export async function open(url: string, { token, ...options }: OpenOptions = {}): Promise<Holdfast> {
  const store = await openStore(url, token === undefined ? {} : { token })
  try {
    return new OwningHoldfast(store, options)
  } catch (error) {
    await store.close()
    throw error
  }
}

/** A Holdfast made from a store leaves the store to whoever made it; this one made it itself. */
class OwningHoldfast extends Holdfast {
  private ending: Promise<void> | null = null

  override close(options?: CloseOptions): Promise<void> {
    this.ending ??= super.close(options).finally(() => this.store.close())
    return this.ending
  }
}
