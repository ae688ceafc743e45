import type {
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  MaybePromise,
  ReleaseAnswer,
  RenewAnswer,
  RenewRequest,
  Store,
  StoreListener,
} from '../../../core/contract.ts'

/** A claim that the store was left with. */
export interface Unclaimed {
  readonly id: string
  readonly name: string
  readonly owner: string
  readonly at: number
}

/**
 * Sees what reaches the store and what its processes say to it. Whatever a claim leaves there is somebody's: the process that sent it
 * hears "held", or says something more about it. What nobody ever speaks of again is a ghost, and in everybody's way until its ttl is over.
 */
export class Witness {
  private readonly open = new Map<string, Unclaimed>()
  private readonly arrived = new WeakSet<object>()
  /** Claims that the network brought once more, of which their process cannot know. */
  private readonly copied = new Set<string>()
  /** Claims that were given up last without an answer. */
  private readonly unanswered = new Set<string>()
  /** Claims behind which a queue was seen, by their own process. */
  private readonly contended = new Set<string>()
  private readonly downgraded = new Set<string>()
  /** Tokens of claims that were taken away, and of those whose process was told so. */
  private readonly taken = new Map<string, string>()
  private readonly revoked = new Set<string>()
  /** Releases that said that nobody was seen there. */
  readonly untrue: ClaimRef[] = []
  private readonly now: () => number

  constructor(now: () => number) {
    this.now = now
  }

  /** Claims that nobody spoke of after they had come to the store. */
  get unclaimed(): readonly Unclaimed[] {
    return [...this.open.values()].filter(({ id }) => !this.isForgiven(id))
  }

  /** Its process cannot know of it, or was not answered for as long as it asked. */
  isForgiven(id: string): boolean {
    return this.copied.has(id) || this.unanswered.has(id)
  }

  /** A claim was taken away. */
  readonly took = ({ name, id }: ClaimRef, token: bigint): void =>
    void this.taken.set(id, leaseOf(name, token))

  /** Whether somebody was told that this is taken away. */
  wasRevoked(name: string, token: bigint): boolean {
    return this.revoked.has(leaseOf(name, token))
  }

  /** The store itself, which answers at once. */
  within(store: Store): Store {
    return replaced(store, {
      claim: (request, timeout) => {
        const answer = store.claim(request, timeout)
        this.came(request, answer as ClaimAnswer)
        return answer
      },
      release: (claim, next, timeout) => {
        this.spoken([claim])
        const result = store.release(claim, next, timeout)
        if (next !== undefined && 'next' in result) this.came(next, result.next)
        return result
      },
      withdraw: (claim, timeout) => {
        this.spoken([claim])
        return store.withdraw(claim, timeout)
      },
    })
  }

  /** The same, as one process sees it. */
  before(store: Store): Store {
    const { downgrade } = store
    return replaced(store, {
      claim: (request, timeout) => {
        this.spoken([request])
        return lookedAt(store.claim(request, timeout), (answer) => this.heard(request, answer))
      },
      renew: (requests, timeout) => {
        this.spoken(requests)
        return lookedAt(store.renew(requests, timeout), (answers) => {
          // Of a list with one left out nobody can say whose is whose.
          if (answers?.length === requests.length)
            requests.forEach((request, index) => this.sees(request, answers[index]))
        })
      },
      release: (claim, next, timeout) => {
        this.spoken(next === undefined ? [claim] : [claim, next])
        if (claim.uncontended === true) this.saidCalm(claim)
        return lookedAt(store.release(claim, next, timeout), (result) => {
          this.givenUp(claim, result?.released)
          if (next !== undefined) this.heard(next, result?.next)
        })
      },
      withdraw: (claim, timeout) => {
        this.spoken([claim])
        return lookedAt(store.withdraw(claim, timeout), (answer) => this.givenUp(claim, answer))
      },
      downgrade:
        downgrade &&
        ((claim, timeout) => {
          // It asks anew who waits for a reader to go.
          this.downgraded.add(claim.id)
          return downgrade.call(store, claim, timeout)
        }),
      watch: (session, listener, timeout) => {
        const told: StoreListener = (event) => {
          if (event.kind === 'contended') this.contended.add(event.id)
          if (event.kind === 'revoked') this.revoked.add(this.taken.get(event.id) ?? '')
          listener(event)
        }
        return store.watch(session, told, timeout)
      },
    })
  }

  private came(request: ClaimRequest, answer: ClaimAnswer | undefined): void {
    const { id, name, owner } = request
    if (this.arrived.has(request)) this.copied.add(id)
    this.arrived.add(request)
    if (answer?.kind === 'held' || answer?.kind === 'queued')
      this.open.set(id, { id, name, owner, at: this.now() })
  }

  private heard(claim: ClaimRef, answer: ClaimAnswer | undefined): void {
    if (answer?.kind === 'held') this.open.delete(claim.id)
    this.sees(claim, answer)
  }

  private sees({ id }: ClaimRef, answer: ClaimAnswer | RenewAnswer | undefined): void {
    if (answer?.kind === 'held' || answer?.kind === 'renewed') if (answer.contended) this.contended.add(id)
  }

  private givenUp({ id }: ClaimRef, answer: ReleaseAnswer | undefined): void {
    if (answer?.kind === 'released' || answer?.kind === 'not-held') this.unanswered.delete(id)
    else this.unanswered.add(id)
  }

  private saidCalm(claim: ClaimRef): void {
    if (this.contended.has(claim.id) && !this.downgraded.has(claim.id)) this.untrue.push(claim)
  }

  private spoken(claims: readonly (ClaimRef | RenewRequest)[]): void {
    for (const { id } of claims) this.open.delete(id)
  }
}

function replaced(store: Store, methods: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, key): unknown {
      const value: unknown = Reflect.get(methods, key) ?? Reflect.get(target, key)
      return typeof value === 'function' && !Reflect.has(methods, key) ? value.bind(target) : value
    },
  })
}

/** The same answer, as soon. A store that is broken gives something else, or nothing. */
function lookedAt<T>(answer: MaybePromise<T>, look: (answer: T | undefined) => void): MaybePromise<T> {
  if (typeof answer === 'object' && answer !== null && 'then' in answer)
    answer.then(look).then(null, () => {})
  return answer
}

const leaseOf = (name: string, token: bigint): string => `${name}\n${token}`
