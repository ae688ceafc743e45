import { emptyQueue, sessionOf, step, view } from '../../../core/claim-queue.ts'
import type { Instant, Outcome, QueueCommand, QueueState } from '../../../core/claim-queue.ts'
import type {
  Capabilities,
  ListPage,
  ListQuery,
  NameInfo,
  Store,
  StoreEvent,
  StoreListener,
} from '../../../core/contract.ts'
import { capabilitiesOf } from '../../../stores/redis/capabilities.ts'
import type { Clocks, TrueTime } from '../clocks.ts'
import { RemoteStore } from './remote-store.ts'
import type { Backend, BackendOptions } from './backend.ts'
import { makeNode } from './backend.ts'

/** How much survives a loss of power: nothing, all but the last second, everything. */
export type Durability = 'none' | 'every second' | 'always'

interface Settings {
  readonly durability: Durability
  readonly fencing: 'hybrid' | 'durable'
  /** When a waiter is told of its grant. */
  readonly tells: 'after' | 'early'
}

const DEFAULTS: Settings = { durability: 'always', fencing: 'hybrid', tells: 'after' }

/** One command that changed something, as the replica and the disk get it. */
interface Entry {
  readonly at: number
  readonly name: string
  readonly command: QueueCommand
  readonly instant: Instant
  readonly listening: ReadonlySet<string>
}

/**
 * A primary like Redis: leases by the wall clock, and a log of commands from which disk and replica build the same state,
 * each as far as it has come. What they lack when their turn comes was never done.
 */
class RedisServer {
  readonly kind = 'redis'
  readonly capabilities: Capabilities
  private readonly clocks: Clocks
  private readonly now: TrueTime
  private readonly durability: Durability
  private readonly hybrid: boolean
  private queues = new Map<string, QueueState>()
  private log: Entry[] = []
  private readonly listeners = new Map<string, StoreListener>()
  /** Those at the replica: they hear what is published here, and nobody here knows of them. */
  private forwarded = new Map<string, StoreListener>()
  /** As scripts did that asked PUBLISH whether a waiter listens: they told it of a grant, and then did not make it. */
  private readonly tellsEarly: boolean
  readonly falseMessages: string[] = []
  /** How many grants were told. */
  told = 0

  constructor(clocks: Clocks, now: TrueTime, { durability, fencing, tells }: Settings) {
    this.clocks = clocks
    this.now = now
    this.durability = durability
    this.tellsEarly = tells === 'early'
    this.hybrid = fencing === 'hybrid'
    this.capabilities = capabilitiesOf(fencing)
  }

  claim: Store['claim'] = (request) => this.run(request.name, { kind: 'claim', request }).answer
  renew: Store['renew'] = (requests) =>
    requests.map((request) => this.run(request.name, { kind: 'renew', request }).answer)
  release: Store['release'] = (claim, next) => this.run(claim.name, { kind: 'release', claim, next }).answer
  withdraw: Store['withdraw'] = (claim) => this.run(claim.name, { kind: 'withdraw', claim }).answer
  downgrade: NonNullable<Store['downgrade']> = (claim) =>
    this.run(claim.name, { kind: 'downgrade', claim }).answer

  watch: Store['watch'] = (session, listener) => {
    this.listeners.set(session, listener)
    const stop = (): void => {
      if (this.listeners.get(session) === listener) this.listeners.delete(session)
    }
    return { kind: 'watching', stop }
  }

  inspect(name: string): NameInfo {
    return view(this.queues.get(name) ?? emptyQueue(), name, this.instant())
  }

  list({ prefix = '', limit = 100, cursor = '' }: ListQuery): ListPage {
    const found = [...this.queues.keys()].filter((name) => name.startsWith(prefix) && name > cursor).sort()
    const names = found.slice(0, limit)
    return found.length > limit ? { names, cursor: names.at(-1) ?? '' } : { names }
  }

  close(): void {
    this.listeners.clear()
    this.forwarded.clear()
  }

  /** Comes back after it was killed, which loses nothing that it had answered, or after the power went. */
  restart(memory: 'kept' | 'lost', wentDownAt: number): void {
    if (memory === 'kept' && this.durability !== 'none') return this.rebuild(Infinity)
    const lastSync = Math.floor(wentDownAt / 1000) * 1000
    this.rebuild({ none: -Infinity, 'every second': lastSync, always: Infinity }[this.durability])
  }

  /** Comes back, or the replica in its place, with what was written by then. */
  rebuild(until: number): void {
    this.listeners.clear()
    this.forwarded.clear()
    this.queues = new Map()
    this.log = this.log.filter(({ at }) => at <= until)
    for (const entry of this.log) this.apply(entry)
  }

  /** The replica takes over with everything. Connections of commands follow, those of listeners do not. */
  handOver(): void {
    this.forwarded = new Map([...this.forwarded, ...this.listeners])
    this.listeners.clear()
  }

  private run<C extends QueueCommand>(name: string, command: C): Outcome<C['kind']> {
    const listening = new Set(this.listeners.keys())
    const entry = { at: this.now(), name, command, instant: this.instant(), listening }
    this.log.push(entry)
    const outcome = this.apply(entry) as Outcome<C['kind']>
    for (const { session, event } of outcome.notices) this.publish(session, event)
    if (this.tellsEarly) this.tellPassedOver(name)
    return outcome
  }

  private publish(session: string, event: StoreEvent): void {
    if (event.kind === 'granted') {
      this.told += 1
      this.checkMade(event.name, event.id)
    }
    this.listeners.get(session)?.(event)
    this.forwarded.get(session)?.(event)
  }

  private checkMade(name: string, id: string): void {
    if (this.queues.get(name)?.holders.get(id) !== undefined) return
    this.falseMessages.push(`at ${this.now()} a grant of "${name}" was told that had not been made`)
  }

  /** Whoever could have the name, and does not listen here. */
  private tellPassedOver(name: string): void {
    const queue = this.queues.get(name)
    if (queue === undefined) return
    for (const { id, weight, tokens } of queue.waiters.values()) {
      if (queue.used + weight > queue.capacity) return
      const token = BigInt(Math.max(queue.fence + 1, this.instant().micros))
      this.publish(sessionOf(id), { kind: 'granted', name, id, token, count: tokens, contended: true })
    }
  }

  private apply({ name, command, instant, listening }: Entry): Outcome<QueueCommand['kind']> {
    const queue = this.queues.get(name) ?? emptyQueue()
    this.queues.set(name, queue)
    return step(queue, command, instant, (session) => listening.has(session))
  }

  private instant(): Instant {
    const wall = this.clocks.wall()
    return { ms: Math.floor(wall), micros: this.hybrid ? Math.floor(wall * 1000) : 0 }
  }
}

export function redisBackend({ now, settings }: BackendOptions): Backend {
  const node = makeNode(0, now)
  const server = new RedisServer(node.clocks, now, { ...DEFAULTS, ...(settings as Partial<Settings>) })
  return {
    nodes: [node],
    connect: (network) => new RemoteStore(network, node, () => server),
    restarted: (_, memory, wentDownAt) => server.restart(memory, wentDownAt),
    failedOver: (_, writtenBy) => server.rebuild(writtenBy),
    handedOver: () => server.handOver(),
    messages: () => ({ told: server.told, wrong: server.falseMessages }),
    inspect: (name) => server.inspect(name),
  }
}
