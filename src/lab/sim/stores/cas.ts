import type {
  Capabilities,
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  Held,
  NameInfo,
  ReleaseAnswer,
  ReleaseResult,
  RenewAnswer,
  RenewRequest,
  Store,
  Unknown,
  Watch,
} from '../../../core/contract.ts'
import { capabilities, secondsFor } from '../../../stores/memcached/capabilities.ts'
import type { Network, Node } from '../network.ts'
import { makeNode } from './backend.ts'
import type { Backend, BackendOptions } from './backend.ts'
import { CasServer } from './cas-server.ts'
import type { Item } from './cas-server.ts'

const FENCE_S = 3600
const WITHDRAWN_S = 60
const TOMB = 'withdrawn '
const RELEASED: ReleaseAnswer = { kind: 'released' }
const NOT_HELD: ReleaseAnswer = { kind: 'not-held' }
const CHANGED: Unknown = { kind: 'unknown', cause: new Error('the item changed meanwhile') }

/** One command's answer; undefined is one too. */
interface Said<T> {
  readonly said: T
}

/** A lock as one item: the recipe of the memcached store, one command a message. */
class CasStore implements Store {
  readonly kind = 'cas'
  readonly capabilities: Capabilities = capabilities
  private readonly network: Network
  private readonly node: Node
  private readonly server: CasServer
  private readonly granted = new Map<string, { token: bigint; count: number }>()

  constructor(network: Network, node: Node, server: CasServer) {
    this.network = network
    this.node = node
    this.server = server
  }

  /** Create, reserve tokens, look: whoever took it from us in between has the larger token or is seen. */
  async claim(request: ClaimRequest, timeout: number): Promise<ClaimAnswer> {
    const { name, id, tokens, ttl } = request
    const left = this.deadline(timeout)
    const seconds = secondsFor(ttl)
    const added = await this.send('claim', left(), () => this.server.add(name, id, seconds))
    if ('kind' in added) return added
    if (!added.said) {
      const taken = await this.takeOver(name, id, seconds, left)
      if (taken !== undefined) return taken
    }
    const minted = await this.mint(name, tokens, left())
    if ('kind' in minted) return minted
    const seen = await this.send('look', left(), () => this.server.get(name))
    if ('kind' in seen) return seen
    if (seen.said?.value !== id) return { kind: 'busy' }
    const block = this.granted.get(id) ?? { token: minted.said, count: tokens }
    this.granted.set(id, block)
    return held(block)
  }

  async renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    return Promise.all(requests.map((request) => this.renewOne(request, timeout)))
  }

  async release(ref: ClaimRef, next: ClaimRequest | undefined, timeout: number): Promise<ReleaseResult> {
    const left = this.deadline(timeout)
    const released = await this.give(ref, left)
    return next === undefined ? { released } : { released, next: await this.claim(next, left()) }
  }

  /** Leaves a tombstone in its place: while there is any item, a late copy of the claim can create none. */
  async withdraw({ name, id }: ClaimRef, timeout: number): Promise<ReleaseAnswer> {
    const left = this.deadline(timeout)
    const tomb = TOMB + id
    this.granted.delete(id)
    const seen = await this.send('withdraw', left(), () => {
      this.server.add(name, tomb, WITHDRAWN_S)
      return this.server.get(name)
    })
    if ('kind' in seen) return seen
    const { said: item } = seen
    if (item?.value !== id) return NOT_HELD
    const changed = await this.send('bury', left(), () => this.server.cas(name, tomb, item.cas, WITHDRAWN_S))
    if ('kind' in changed) return changed
    return changed.said === 'stored' ? RELEASED : CHANGED
  }

  watch(): Watch {
    return { kind: 'watching', stop: () => undefined }
  }

  inspect(name: string): NameInfo {
    return infoOf(name, this.server.get(name))
  }

  list(): { readonly names: readonly string[] } {
    return { names: [] }
  }

  close(): void {}

  /** What somebody left who withdrew may be replaced; his own late copies may not. Undefined: it is ours now. */
  private async takeOver(
    name: string,
    id: string,
    seconds: number,
    left: () => number,
  ): Promise<ClaimAnswer | undefined> {
    const seen = await this.send('look', left(), () => this.server.get(name))
    if ('kind' in seen) return seen
    const { said: item } = seen
    const free = item?.value === id || (item?.value.startsWith(TOMB) === true && item.value !== TOMB + id)
    if (item === undefined || !free) return { kind: 'busy' }
    const changed = await this.send('claim', left(), () => this.server.cas(name, id, item.cas, seconds))
    if ('kind' in changed) return changed
    return changed.said === 'stored' ? undefined : { kind: 'busy' }
  }

  private async renewOne({ name, id, ttl, tokens }: RenewRequest, timeout: number): Promise<RenewAnswer> {
    const left = this.deadline(timeout)
    const seen = await this.send('renew', left(), () => this.server.get(name))
    if ('kind' in seen) return seen
    const { said: item } = seen
    if (item?.value !== id) return { kind: 'lost' }
    const kept = await this.send('renew', left(), () => this.server.cas(name, id, item.cas, secondsFor(ttl)))
    if ('kind' in kept) return kept
    if (kept.said !== 'stored') return kept.said === 'missing' ? { kind: 'lost' } : CHANGED
    if (tokens === 0) return { kind: 'renewed', contended: false }
    const minted = await this.mint(name, tokens, left())
    return 'kind' in minted ? minted : held({ token: minted.said, count: tokens })
  }

  private async give({ name, id }: ClaimRef, left: () => number): Promise<ReleaseAnswer> {
    this.granted.delete(id)
    const seen = await this.send('release', left(), () => this.server.get(name))
    if ('kind' in seen) return seen
    const { said: item } = seen
    if (item?.value !== id) return NOT_HELD
    const removed = await this.send('release', left(), () => this.server.remove(name, item.cas))
    if ('kind' in removed) return removed
    return removed.said === 'exists' ? CHANGED : removed.said === 'removed' ? RELEASED : NOT_HELD
  }

  /** The first of so many new tokens. A counter that is gone begins at our time. */
  private async mint(name: string, count: number, timeout: number): Promise<Said<bigint> | Unknown> {
    const initial = Math.floor(this.network.env.wall() * 1000) + count
    const last = await this.send('mint', timeout, () =>
      this.server.increase(`${name} fence`, count, initial, FENCE_S),
    )
    return 'kind' in last ? last : { said: BigInt(last.said - count + 1) }
  }

  private deadline(timeout: number): () => number {
    const end = this.network.env.mono() + timeout
    return () => Math.max(1, end - this.network.env.mono())
  }

  private send<T>(method: string, timeout: number, run: () => T): Promise<Said<T> | Unknown> {
    return this.network.call(this.node, method, timeout, () => ({ said: run() }))
  }
}

function held({ token, count }: { readonly token: bigint; readonly count: number }): Held {
  return { kind: 'held', token, count, contended: false }
}

function infoOf(name: string, item: Item | undefined): NameInfo {
  const mine = item !== undefined && !item.value.startsWith(TOMB)
  const holders = mine ? [{ id: item.value, owner: item.value, weight: 1, expiresIn: 0 }] : []
  return { name, capacity: 1, holders, waiters: [] }
}

export function casBackend({ now }: BackendOptions): Backend {
  const node = makeNode(0, now)
  const server = new CasServer(node.clocks)
  return {
    nodes: [node],
    connect: (network) => new CasStore(network, node, server),
    restarted: () => server.empty(),
    evict: (_, name) => server.evict(name),
    inspect: (name) => infoOf(name, server.get(name)),
  }
}
