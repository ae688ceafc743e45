import type { Capabilities, Store } from '../../core/contract.ts'
import { StoreUnavailableError } from '../../core/errors.ts'
import type { Holdfast } from '../../locks/holdfast.ts'
import { Holdfast as Ours } from '../../locks/holdfast.ts'
import { openStore } from '../../open.ts'
import type { StoreOptions } from '../../open.ts'
import type { Library, WorkOrder } from './worker-protocol.ts'

/** As much of holdfast as the lab's clients use. Another library is led through the lab by an adapter of this shape. */
export type LabClient = Pick<Holdfast, 'mutex' | 'readWriteLock' | 'semaphore' | 'close'> & {
  readonly store: { readonly downgrade?: unknown }
  /** The process that does the work, where that is not this one: what is done to the client is done to it, too. */
  readonly companion?: number
  /** Tells for how long the companion got no processor, whenever that happened. */
  readonly stalls?: (heard: (ms: number) => void) => void
}

/** A library that is not holdfast, and what the lab has to know of it. */
export interface Foreign {
  readonly library: Library
  /** What it can do, in the words of a store's capabilities. */
  readonly capabilities: Capabilities
  /** Whether its grants have fencing tokens. */
  readonly tokens: boolean
  /** What its backend has of a name; undefined: no answer. */
  inspect(name: string): Promise<'held' | 'free' | undefined>
}

/** A lease that does not know how long it is good for: what careful code asks before it writes. */
export interface Doubtful {
  sure(): boolean | Promise<boolean>
}

/** Whoever is given no processor for seconds may miss the store's first answer. */
const ATTEMPTS = 5

export async function opened(
  url: string,
  credentials: StoreOptions | undefined,
  attempt: number = 1,
): Promise<Store> {
  try {
    return await openStore(url, credentials)
  } catch (error) {
    const again = error instanceof StoreUnavailableError && error.retryable !== false && attempt < ATTEMPTS
    if (!again) throw error
    return opened(url, credentials, attempt + 1)
  }
}

/** What a client works with: holdfast, or what its order names instead. */
export async function openLibrary(order: WorkOrder): Promise<LabClient> {
  const { library, url, credentials, ttl, patience, requestTimeout, label: owner } = order
  if (library !== undefined) {
    const module = (await import(library.url)) as Record<
      string,
      (order: WorkOrder) => LabClient | Promise<LabClient>
    >
    const open = module[library.export]
    if (open === undefined) throw new Error(`${library.url} has no export ${library.export}`)
    return open(order)
  }
  const store = await opened(url, credentials)
  return new Ours(store, { closeStore: true, ttl, patience, requestTimeout, owner })
}
