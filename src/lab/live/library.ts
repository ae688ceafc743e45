import type { Holdfast } from '../../locks/holdfast.ts'
import { Holdfast as Ours } from '../../locks/holdfast.ts'
import { openStore } from '../../open.ts'
import type { WorkOrder } from './worker-protocol.ts'

/** As much of holdfast as the lab's clients use. Another library is led through the lab by an adapter of this shape. */
export type LabClient = Pick<Holdfast, 'mutex' | 'readWriteLock' | 'semaphore' | 'close'> & {
  readonly store: { readonly downgrade?: unknown }
}

/** What a client works with: holdfast, or what its order names instead. */
export async function openLibrary(order: WorkOrder): Promise<LabClient> {
  const { library, url, token, ttl, patience, requestTimeout, label: owner } = order
  if (library !== undefined) {
    const module = (await import(library.url)) as Record<
      string,
      (order: WorkOrder) => LabClient | Promise<LabClient>
    >
    const open = module[library.export]
    if (open === undefined) throw new Error(`${library.url} has no export ${library.export}`)
    return open(order)
  }
  const store = await openStore(url, token === undefined ? {} : { token })
  return new Ours(store, { closeStore: true, ttl, patience, requestTimeout, owner })
}
