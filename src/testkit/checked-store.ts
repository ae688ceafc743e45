import type { ClaimRequest, MaybePromise, Store } from '../core/contract.ts'
import {
  claimFault,
  downgradeFault,
  eventFault,
  guardsFault,
  infoFault,
  nextFault,
  pageFault,
  releaseFault,
  renewFault,
  resultFault,
  storeFault,
  watchFault,
} from './store-faults.ts'

/** A store answered in a way that the contract does not know. The message says which method, and what is wrong. */
export class StoreFaultError extends Error {
  readonly method: string

  constructor(kind: string, method: string, problem: string, options?: ErrorOptions) {
    super(`The store "${kind}" breaks the contract: ${method} ${problem}`, options)
    this.name = 'StoreFaultError'
    this.method = method
  }
}

export interface CheckedStoreOptions {
  /** Hears of every fault, also where the caller takes it for a store that does not answer. */
  readonly onFault?: ((fault: StoreFaultError) => void) | undefined
}

/**
 * The same store, with its answers looked at: a mistake is told by name, where otherwise a lock would just not be free in
 * time. For tests and while a store is written. Throws a StoreFaultError at once when a method or a capability is missing.
 */
export function checkedStore(store: Store, { onFault }: CheckedStoreOptions = {}): Store {
  const shape = storeFault(store)
  const kind = typeof (store as Store | undefined)?.kind === 'string' ? store.kind : 'without a kind'
  const fault = (method: string, problem: string, options?: ErrorOptions): StoreFaultError => {
    const error = new StoreFaultError(kind, method, problem, options)
    onFault?.(error)
    return error
  }
  if (shape !== null) throw fault('it', shape)
  const threw = (method: string, cause: unknown): StoreFaultError => {
    const problem = `threw: ${String(cause)}. Whatever can happen at run time is the answer { kind: 'unknown', cause }`
    return fault(`${method}()`, problem, { cause })
  }

  const checked = <T>(
    method: string,
    call: () => MaybePromise<T>,
    faultOf: (answer: T) => string | null,
  ): MaybePromise<T> => {
    const look = (answer: T): T => {
      const problem = faultOf(answer)
      if (problem !== null) throw fault(`${method}()`, problem)
      return answer
    }
    let answer: MaybePromise<T>
    try {
      answer = call()
    } catch (cause) {
      throw threw(method, cause)
    }
    if (answer instanceof Promise) {
      return answer.then(look, (cause: unknown) => {
        throw threw(method, cause)
      })
    }
    if (typeof (answer as { then?: unknown } | null | undefined)?.then === 'function') {
      throw fault(`${method}()`, 'answered with a thenable that is no Promise')
    }
    return look(answer)
  }

  // A claim that stands in line stays there when it is sent again, whatever it says then.
  const queueing = new Set<string>()
  const mayQueue = ({ id, whenBusy }: ClaimRequest): boolean => {
    if (whenBusy === 'queue') queueing.add(id)
    return queueing.has(id)
  }

  const { capabilities, downgrade, listeningIsFree, votes } = store
  return {
    kind,
    capabilities,
    ...(listeningIsFree !== undefined && { listeningIsFree }),
    ...(votes && { votes }),
    ...(store.guards !== undefined && {
      guards: (id) => {
        let answer: unknown
        try {
          answer = store.guards?.(id)
        } catch (cause) {
          throw threw('guards', cause)
        }
        const problem = guardsFault(answer)
        if (problem !== null) throw fault('guards()', problem)
        return answer as boolean
      },
    }),
    claim: (request, timeout) => {
      const queues = mayQueue(request)
      return checked(
        'claim',
        () => store.claim(request, timeout),
        (answer) => claimFault(answer, capabilities, queues),
      )
    },
    renew: (requests, timeout) =>
      checked(
        'renew',
        () => store.renew(requests, timeout),
        (answers) => renewFault(answers, requests),
      ),
    release: (claim, next, timeout) => {
      const queues = next !== undefined && mayQueue(next)
      return checked(
        'release',
        () => store.release(claim, next, timeout),
        (result) => (next === undefined ? resultFault(result) : nextFault(result, capabilities, queues)),
      )
    },
    withdraw: (claim, timeout) => checked('withdraw', () => store.withdraw(claim, timeout), releaseFault),
    ...(downgrade && {
      downgrade: (claim, timeout) =>
        checked('downgrade', () => downgrade.call(store, claim, timeout), downgradeFault),
    }),
    watch: (session, listener, timeout) =>
      checked(
        'watch',
        () =>
          store.watch(
            session,
            (event) => {
              const problem = eventFault(event)
              // Nobody waits for an event, so that there is nobody to throw at.
              if (problem === null) listener(event)
              else fault('an event', problem)
            },
            timeout,
          ),
        watchFault,
      ),
    inspect: (name, timeout) =>
      checked(
        'inspect',
        () => store.inspect(name, timeout),
        (info) => infoFault(info, name),
      ),
    list: (query, timeout) => checked('list', () => store.list(query, timeout), pageFault),
    close: () => store.close(),
  }
}
