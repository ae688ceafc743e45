import type { ClaimRequest, Store } from '../core/contract.ts'
import { when } from './when.ts'

/**
 * Gives up a place in line and, unless `lease` says so, nothing else. It may have become a lease since the store was last asked, of
 * which another server has told the client: so the store is asked once more. Between that answer and the release there is no
 * time in which the other server could hear of a grant, ask about it and be answered.
 */
export function leaveLine(
  store: Store,
  request: ClaimRequest,
  { lease }: { readonly lease: boolean },
  timeout: number,
): void {
  const { name, id, ttl, patience } = request
  const release = (): unknown => store.release(request, undefined, timeout)
  const left = lease
    ? release()
    : when(store.renew([{ name, id, ttl, patience, tokens: 0 }], timeout), ([told]) =>
        told?.kind === 'queued' ? release() : undefined,
      )
  // What the store does not hear of ends with the patience or the ttl.
  if (left instanceof Promise) left.catch(() => undefined)
}
