import type {
  ClaimRef,
  ClaimRequest,
  MaybePromise,
  RenewRequest,
  Store,
  StoreListener,
  Unknown,
  Watch,
} from '../../../core/contract.ts'
import type { Network, Node } from '../network.ts'

const RESUBSCRIBE_MS = 100
const RESUBSCRIBE_TIMEOUT_MS = 400

/** A subscription, as a process keeps it: made again whenever it broke. */
interface Subscription {
  readonly session: string
  readonly listener: StoreListener
  stop: () => void
}

/**
 * A store that answers at once, at the far end of a network. What crosses it is copied: the runtime's own objects change
 * while a message is under way.
 */
export class RemoteStore implements Store {
  readonly kind: string
  readonly capabilities: Store['capabilities']
  /** Only where the server has it. */
  readonly downgrade?: NonNullable<Store['downgrade']>
  private readonly network: Network
  private readonly node: Node
  private readonly server: () => Store
  private readonly subscriptions = new Set<Subscription>()

  constructor(network: Network, node: Node, server: () => Store) {
    this.network = network
    this.node = node
    this.server = server
    this.kind = server().kind
    this.capabilities = server().capabilities
    if (server().downgrade !== undefined) {
      this.downgrade = (claim, timeout) => {
        const ref = copyOfRef(claim)
        return this.call('downgrade', timeout, () => server().downgrade?.(ref, timeout) ?? { kind: 'lost' })
      }
    }
    network.reconnected((index) => {
      if (index !== node.index) return
      for (const subscription of this.subscriptions) this.resubscribe(subscription)
    })
  }

  claim: Store['claim'] = (request, timeout) => {
    const copy = copyOfClaim(request)
    return this.call('claim', timeout, () => this.server().claim(copy, timeout))
  }

  renew: Store['renew'] = async (requests, timeout) => {
    const copies = requests.map(copyOfRenewal)
    const answers = await this.call('renew', timeout, () => this.server().renew(copies, timeout))
    return 'kind' in answers ? requests.map(() => answers) : answers
  }

  release: Store['release'] = async (claim, next, timeout) => {
    const ref = copyOfRef(claim)
    const copy = next && copyOfClaim(next)
    const result = await this.call('release', timeout, () => this.server().release(ref, copy, timeout))
    if (!('kind' in result)) return result
    return next === undefined ? { released: result } : { released: result, next: result }
  }

  withdraw: Store['withdraw'] = (claim, timeout) => {
    const ref = copyOfRef(claim)
    return this.call('withdraw', timeout, () => this.server().withdraw(ref, timeout))
  }

  watch: Store['watch'] = async (session, listener, timeout) => {
    const subscription: Subscription = { session, listener, stop: () => undefined }
    const made = await this.subscribe(subscription, timeout)
    if (made.kind === 'unknown') return made
    this.subscriptions.add(subscription)
    return {
      kind: 'watching',
      stop: () => {
        this.subscriptions.delete(subscription)
        subscription.stop()
      },
    }
  }

  inspect: Store['inspect'] = (name, timeout) =>
    this.call('inspect', timeout, () => this.server().inspect(name, timeout))

  list: Store['list'] = (query, timeout) =>
    this.call('list', timeout, () => this.server().list(query, timeout))

  close(): void {
    this.subscriptions.clear()
  }

  private async subscribe(subscription: Subscription, timeout: number): Promise<Watch | Unknown> {
    const { network, node } = this
    const { session, listener } = subscription
    return this.call('watch', timeout, () => {
      const watch = this.server().watch(
        session,
        (event) => network.push(node, event.kind, () => listener(event)),
        timeout,
      ) as Watch
      subscription.stop = () => watch.stop()
      return watch
    })
  }

  private resubscribe(subscription: Subscription): void {
    const again = (): unknown =>
      this.network.env.setTimer(() => this.resubscribe(subscription), RESUBSCRIBE_MS, true)
    this.subscribe(subscription, RESUBSCRIBE_TIMEOUT_MS).then(({ kind }) => {
      if (!this.subscriptions.has(subscription)) return subscription.stop()
      return kind === 'watching' ? subscription.listener({ kind: 'gap' }) : again()
    }, again)
  }

  // The servers of the simulation answer at once.
  private call<T>(method: string, timeout: number, run: () => MaybePromise<T>): Promise<T | Unknown> {
    return this.network.call(this.node, method, timeout, run as () => T)
  }
}

function copyOfRef({ name, id }: ClaimRef): ClaimRef {
  return { name, id }
}

function copyOfRenewal({ name, id, ttl, patience, tokens }: RenewRequest): RenewRequest {
  return { name, id, ttl, patience, tokens }
}

function copyOfClaim(request: ClaimRequest): ClaimRequest {
  const { name, id, weight, capacity, ttl, patience, tokens, whenBusy, owner } = request
  return { name, id, weight, capacity, ttl, patience, tokens, whenBusy, owner }
}
