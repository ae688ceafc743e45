import type { Store } from '../core/contract.ts'

/** Another client of a store that lives in this process: closing it leaves the store, and its other clients, alone. */
export function sharedStore(store: Store): Store {
  const { downgrade } = store
  return {
    kind: store.kind,
    capabilities: store.capabilities,
    claim: (request, timeout) => store.claim(request, timeout),
    renew: (requests, timeout) => store.renew(requests, timeout),
    release: (claim, next, timeout) => store.release(claim, next, timeout),
    withdraw: (claim, timeout) => store.withdraw(claim, timeout),
    ...(downgrade && { downgrade: (claim, timeout) => downgrade.call(store, claim, timeout) }),
    watch: (session, listener, timeout) => store.watch(session, listener, timeout),
    inspect: (name, timeout) => store.inspect(name, timeout),
    list: (query, timeout) => store.list(query, timeout),
    close: () => undefined,
  }
}
