import type {
  Busy,
  ClaimAnswer,
  ClaimRequest,
  Held,
  Mismatch,
  Queued,
  RenewAnswer,
  RenewRequest,
  StoreEvent,
} from '../../core/contract.ts'
import { ALL } from '../../core/contract.ts'
import { pickUpTime } from '../../core/validity.ts'
import { hasCode, ZooKeeperError } from './client/index.ts'
import type { Acl } from './client/index.ts'
import { now } from './client/time.ts'
import type { Directories } from './directories.ts'
import { protection } from './names.ts'
import { writeNote } from './node-data.ts'
import type { ZkSession } from './zk-session.ts'
import { TOKENS_PER_NODE, tokenOf } from './token.ts'

/** What a claim needs of its store. */
export interface ClaimHost {
  readonly acl: readonly Acl[]
  readonly directories: Directories
  tell(id: string, event: StoreEvent): void
  /** The claim's node is gone, and not by our doing. */
  vanished(claim: Claim): void
  /** A holder: have `attend` called if it is still one after a moment. */
  settled(claim: Claim): void
  /** Its end was put to another moment, perhaps a sooner one. */
  ends(claim: Claim): void
  /** Somebody asks a holder to let go. */
  revocationAsked(claim: Claim): void
}

/** - `new`: nothing is known to stand in a queue for it. `leaving`: it is being removed, for good. */
export type ClaimState = 'new' | 'queued' | 'held' | 'leaving'

/**
 * One claim at ZooKeeper, and the store's own memory of it. What a server of another kind does for every claim (forget a grant
 * that nobody renews, drop a waiter that says nothing) ZooKeeper does for whole sessions only, so here the store
 * does it: `until` is when. If the process dies, the session's end does the same for all its claims.
 */
export abstract class Claim {
  readonly id: string
  readonly name: string
  readonly dir: string
  readonly zkSession: ZkSession
  readonly prefix: string
  /** About what the paths of its nodes take. */
  readonly pathBytes: number
  data: string
  state: ClaimState = 'new'
  /** Of the last request. */
  ttl: number
  until = 0
  contended = false
  /** The request under way, for a repeated one to join. */
  entering: Promise<ClaimAnswer> | null = null
  /** Somebody is about to take the nodes away, and will say whether there were any. */
  removing = false
  /** Its removal was refused, and is tried again in a while. */
  refused = false
  whenBusy: 'queue' | 'try'
  protected readonly host: ClaimHost
  protected readonly weight: number
  protected readonly capacity: number
  private patience: number
  private readonly wanted: number
  /** It was granted without being asked about, and nobody has asked since. */
  private pushed = false
  private base = 0n
  private given = 0
  private block: { readonly token: bigint; readonly count: number } = { token: 0n, count: 0 }

  constructor(request: ClaimRequest, dir: string, zkSession: ZkSession, host: ClaimHost) {
    const { id, name, weight, capacity, ttl, patience, tokens, whenBusy } = request
    this.id = id
    this.name = name
    this.dir = dir
    this.zkSession = zkSession
    this.host = host
    this.weight = weight
    this.capacity = capacity
    this.ttl = ttl
    this.patience = patience
    this.wanted = tokens
    this.whenBusy = whenBusy
    this.prefix = protection(id)
    // A node's name is about as long as two prefixes. A permit has a node of its own, beside the one at the gate.
    const nodes = capacity > 1 && capacity < ALL ? weight + 1 : 1
    this.pathBytes = nodes * (zkSession.chrootBytes + Buffer.byteLength(dir) + 2 * this.prefix.length)
    this.data = writeNote(request)
    this.heard(request)
  }

  /** Joins the queue, or finds itself there. Whoever asks waits until `deadline`. */
  abstract enter(deadline: number): Promise<ClaimAnswer>
  /** Whether the nodes are still there. For holders: and whether somebody waits. */
  abstract check(): Promise<boolean>
  /** For holders: learn of waiters and of removal by force from now on. */
  abstract attend(): void
  /** The connection is back: whatever could not be asked meanwhile. */
  abstract resume(): void
  /** Takes the nodes away; false: there were none. Repeated after a failure. */
  abstract leave(): Promise<boolean>
  /** Puts new nodes in the place of the old ones, for their tokens. Undefined: somebody stands between. */
  protected abstract replace(): Promise<bigint | undefined>

  /** Whether its session, as long as it is now, outlives its leases. */
  get lasting(): boolean {
    return this.zkSession.lastsFor(this.ttl)
  }

  /** What its grant rests on was confirmed a moment ago. */
  protected get proven(): boolean {
    return false
  }

  /** The first question after a push: whether what is known answers it. */
  pickUp(): boolean {
    const { pushed } = this
    this.pushed = false
    return pushed && this.state === 'held' && this.proven
  }

  heard({ ttl, patience }: { readonly ttl: number; readonly patience: number }): void {
    this.ttl = ttl
    this.patience = patience
    this.until = now() + (this.state === 'held' ? ttl : patience)
  }

  /** A request was answered, or failed. Whoever waited for that had nothing else to say, so its patience begins now. */
  answered(): void {
    if (this.state !== 'held') this.until = now() + this.patience
  }

  async renewed(request: RenewRequest): Promise<RenewAnswer> {
    this.heard(request)
    if (this.state === 'queued') return QUEUED
    const { contended } = this
    const { tokens } = request
    if (tokens === 0) return { kind: 'renewed', contended }
    if (this.given + tokens > TOKENS_PER_NODE) {
      const czxid = contended ? undefined : await this.replace().catch(refused)
      if (czxid === undefined) return { kind: 'renewed', contended: true }
      this.base = tokenOf(czxid)
      this.given = 0
    }
    this.give(tokens)
    return this.heldAnswer()
  }

  heldAnswer(): Held {
    return { kind: 'held', ...this.block, contended: this.contended }
  }

  /** The caller asked: it has the grant for its whole ttl from then on. */
  protected hold(czxid: bigint, contended: boolean): Held {
    this.become(czxid, contended)
    this.until = now() + this.ttl
    return this.heldAnswer()
  }

  /** It was granted while nobody asked. */
  protected push(czxid: bigint, contended: boolean): void {
    this.become(czxid, contended)
    this.until = now() + pickUpTime({ ttl: this.ttl, patience: this.patience })
    this.pushed = true
    this.host.tell(this.id, { kind: 'granted', name: this.name, id: this.id, ...this.block, contended })
  }

  protected nowContended(): void {
    if (this.contended || this.state !== 'held') return
    this.contended = true
    this.host.tell(this.id, { kind: 'contended', name: this.name, id: this.id })
  }

  protected async refuse<A extends Busy | Mismatch>(answer: A): Promise<A> {
    this.state = 'leaving'
    await this.leave()
    return answer
  }

  /** Its nodes were removed by somebody else. Whoever asks again asks for new ones. */
  protected removed(): ZooKeeperError {
    if (this.state !== 'leaving') this.host.vanished(this)
    return new ZooKeeperError('NO_NODE', 'The node was removed')
  }

  private become(czxid: bigint, contended: boolean): void {
    this.state = 'held'
    this.contended = contended
    this.base = tokenOf(czxid)
    this.given = 0
    this.give(this.wanted)
    this.host.settled(this)
  }

  private give(tokens: number): void {
    const count = Math.min(tokens, TOKENS_PER_NODE - this.given)
    this.block = { token: this.base + BigInt(this.given), count }
    this.given += count
  }
}

const REFUSALS = ['QUOTA_EXCEEDED', 'THROTTLED', 'NO_AUTH'] as const

/** That its nodes are there was just confirmed. New ones are refused (a quota, for one): that ends no lease, and the old tokens go on. */
function refused(error: unknown): undefined {
  if (!REFUSALS.some((code) => hasCode(error, code))) throw error
}

export const QUEUED: Queued = { kind: 'queued' }
export const BUSY: Busy = { kind: 'busy' }
