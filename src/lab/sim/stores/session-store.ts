import { ALL } from '../../../core/contract.ts'
import type {
  Capabilities,
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  DowngradeAnswer,
  Lost,
  NameInfo,
  ReleaseAnswer,
  ReleaseResult,
  RenewAnswer,
  RenewRequest,
  Store,
  StoreEvent,
  StoreListener,
  Unknown,
  Watch,
} from '../../../core/contract.ts'
import { capabilitiesFor } from '../../../stores/zookeeper/capabilities.ts'
import { isNextInLine, parseNode, positionOf } from '../../../stores/zookeeper/position.ts'
import type { Position } from '../../../stores/zookeeper/position.ts'
import { momentOf, NEVER } from '../../../stores/zookeeper/client/moment.ts'
import type { Moment } from '../../../stores/zookeeper/client/moment.ts'
import { isFresh } from '../../../stores/zookeeper/proof.ts'
import type { Network, Node } from '../network.ts'
import type { SessionNode, SessionServer, Standing } from './session-server.ts'

const LONGEST_SESSION = 40_000
/** Tokens that one node is good for. */
const TOKENS = 1024n
const LOST: Lost = { kind: 'lost' }
const LATE: Unknown = { kind: 'unknown', cause: new Error('the request was overtaken') }

interface Claim {
  readonly name: string
  readonly id: string
  readonly tokens: number
  node: SessionNode
  given: number
  state: 'queued' | 'held'
  /** Where it stood when it last looked, and when it asked. */
  place: Position | null
  proof: Moment
  /** Granted without being asked about, and nobody has asked since. */
  pushed: boolean
}

/** Claims as ephemeral sequential nodes, each waiter behind the one before it: the recipe of the ZooKeeper store. */
export class SessionStore implements Store {
  readonly kind = 'session'
  readonly capabilities: Capabilities = { ...capabilitiesFor(LONGEST_SESSION), permits: false }
  private readonly network: Network
  private readonly node: Node
  private readonly server: SessionServer
  private readonly claims = new Map<string, Claim>()
  private readonly withdrawn = new Set<string>()
  /** Claims that were given up and may still have a node: it goes along with the next request that gets through. */
  private readonly leaving = new Map<string, string>()
  private listener: StoreListener = () => undefined
  private session: number | undefined
  private requests = 0

  constructor(network: Network, node: Node, server: SessionServer) {
    this.network = network
    this.node = node
    this.server = server
    network.ordered = true
    network.reconnected(() => this.listener({ kind: 'gap' }))
  }

  async claim(request: ClaimRequest, timeout: number): Promise<ClaimAnswer> {
    if (this.withdrawn.has(request.id)) return { kind: 'busy' }
    this.leaving.delete(request.id)
    const connected = await this.connect(request.ttl, timeout)
    if (connected !== undefined) return connected
    const proof = momentOf(this.network.env)
    const standing = await this.ask('claim', timeout, () => this.enter(request))
    return 'kind' in standing ? standing : this.entered(request, standing, proof, timeout)
  }

  async renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    const known = requests.map(({ id }) => this.claims.get(id))
    if (this.session === undefined) return requests.map(() => LOST)
    const [first] = known
    if (known.length === 1 && first !== undefined && this.pickUp(first))
      return [this.renewed(first, first.place, requests[0] as RenewRequest)]
    const answer = await this.ask('renew', timeout, () => known.map((claim) => claim && this.look(claim)))
    if ('kind' in answer) return requests.map(() => answer)
    return answer.map((standing, index) => {
      const claim = known[index]
      if (claim === undefined || standing === undefined || this.claims.get(claim.id) !== claim) return LOST
      return this.renewed(claim, placed(standing), requests[index] as RenewRequest)
    })
  }

  async release(ref: ClaimRef, next: ClaimRequest | undefined, timeout: number): Promise<ReleaseResult> {
    const { name, id } = ref
    this.giveUp(ref)
    if (this.session === undefined) {
      const released: ReleaseAnswer = { kind: 'not-held' }
      return next === undefined ? { released } : { released, next: await this.claim(next, timeout) }
    }
    // Both leave in one flight, the removal first.
    const copy = next && { ...request(next) }
    const proof = momentOf(this.network.env)
    const answer = await this.ask('release', timeout, () => ({
      removed: this.leave(name, id),
      entered: copy && this.enter(copy),
    }))
    if ('kind' in answer)
      return next === undefined ? { released: answer } : { released: answer, next: answer }
    const released: ReleaseAnswer = { kind: answer.removed ? 'released' : 'not-held' }
    if (copy === undefined || answer.entered === undefined) return { released }
    return { released, next: await this.entered(copy, answer.entered, proof, timeout) }
  }

  async withdraw({ name, id }: ClaimRef, timeout: number): Promise<ReleaseAnswer> {
    this.withdrawn.add(id)
    this.giveUp({ name, id })
    if (this.session === undefined) return { kind: 'not-held' }
    const removed = await this.ask('withdraw', timeout, () => ({ there: this.leave(name, id) }))
    if ('kind' in removed) return removed
    return { kind: removed.there ? 'released' : 'not-held' }
  }

  async downgrade({ name, id }: ClaimRef, timeout: number): Promise<DowngradeAnswer> {
    const claim = this.claims.get(id)
    if (this.session === undefined || claim?.state !== 'held') return LOST
    const answer = await this.ask('downgrade', timeout, () => ({
      done: this.server.downgrade(name, `${id}-`),
    }))
    if ('kind' in answer) return answer
    return answer.done && this.claims.get(id) === claim ? { kind: 'downgraded' } : LOST
  }

  watch(_session: string, listener: StoreListener): Watch {
    this.listener = listener
    return { kind: 'watching', stop: () => void (this.listener = () => undefined) }
  }

  inspect(name: string): NameInfo {
    return { name, capacity: 1, holders: [], waiters: [] }
  }

  list(): { readonly names: readonly string[] } {
    return { names: [] }
  }

  close(): void {
    this.listener = () => undefined
  }

  /** Undefined: there is a session. */
  private async connect(ttl: number, timeout: number): Promise<Unknown | undefined> {
    if (this.session !== undefined) return undefined
    const made = await this.network.call(this.node, 'connect', timeout, () => ({
      id: this.server.connect(ttl),
    }))
    if ('kind' in made) return made
    this.session ??= made.id
    return undefined
  }

  /** One request of the session. Its end is the end of all that it held. */
  private async ask<T extends object>(method: string, timeout: number, run: () => T): Promise<T | Unknown> {
    const { session, server } = this
    const number = ++this.requests
    const leaving = [...this.leaving]
    const answer = await this.network.call(this.node, method, timeout, () => {
      const heard = session === undefined ? 'expired' : server.hears(session, number)
      if (heard !== 'heard') return { heard }
      const said = run()
      for (const [id, name] of leaving) this.leave(name, id)
      return { heard, said }
    })
    if ('kind' in answer) return answer
    if (answer.heard === 'late') return LATE
    if (answer.heard === 'heard' && answer.said !== undefined) {
      for (const [id] of leaving) this.leaving.delete(id)
      return answer.said
    }
    if (this.session === session) this.sessionOver()
    return { kind: 'unknown', cause: new Error('the session has ended') }
  }

  private giveUp({ name, id }: ClaimRef): void {
    this.claims.delete(id)
    this.leaving.set(id, name)
  }

  private sessionOver(): void {
    this.session = undefined
    this.leaving.clear()
    const claims = [...this.claims.values()]
    this.claims.clear()
    for (const { state, name, id } of claims) if (state === 'held') this.tell({ kind: 'revoked', name, id })
    this.tell({ kind: 'gap' })
  }

  /** At the server: finds the claim's node, or makes one. */
  private enter({ name, id, weight, capacity }: ClaimRequest): Standing {
    const kind = capacity === 1 ? 'lock-' : weight === ALL ? '__WRIT__' : '__READ__'
    const node =
      this.server.find(name, `${id}-`) ?? this.server.create(this.session as number, name, `${id}-${kind}`)
    return this.standing(name, id, node)
  }

  /** At the server, too. */
  private look({ name, id }: ClaimRef): Standing | undefined {
    const node = this.server.find(name, `${id}-`)
    return node && this.standing(name, id, node)
  }

  /**
   * The look and the watches are one: a waiter hears of the end of the one before it and of the one before that, a holder of who
   * comes behind it.
   */
  private standing(name: string, id: string, node: SessionNode): Standing {
    const { server, network } = this
    const standing = { node, children: server.children(name) }
    const place = placed(standing)
    const tell = (gone: string) => (): void =>
      network.push(this.node, 'watch', () => void this.watchFired(id, gone))
    for (const before of [place?.behind, place?.beyond])
      if (before) server.watchNode(name, before.name, id, tell(before.name))
    if (place?.behind === null && !place.contended) server.watchChildren(name, id, tell(''))
    return standing
  }

  private leave(name: string, id: string): boolean {
    let there = false
    for (
      let node = this.server.find(name, `${id}-`);
      node !== undefined;
      node = this.server.find(name, `${id}-`)
    )
      there = this.server.remove(name, node.name) || there
    return there
  }

  private async entered(
    asked: ClaimRequest,
    standing: Standing,
    proof: Moment,
    timeout: number,
  ): Promise<ClaimAnswer> {
    const { name, id, tokens } = asked
    const known = this.claims.get(id)
    const claim: Claim = known ?? { name, id, tokens, node: standing.node, ...NOTHING_KNOWN }
    claim.node = standing.node
    const place = placed(standing)
    claim.place = place
    claim.proof = proof
    if (place?.behind === null) {
      this.claims.set(id, claim)
      return this.hold(claim, place)
    }
    if (asked.whenBusy === 'try') {
      const { released } = await this.release(asked, undefined, timeout)
      return released.kind === 'unknown' ? released : { kind: 'busy' }
    }
    this.claims.set(id, claim)
    return { kind: 'queued' }
  }

  private renewed(claim: Claim, place: Position | null, { tokens }: RenewRequest): RenewAnswer {
    const contended = place?.contended === true
    if (claim.state === 'queued') {
      if (place?.behind === null) return this.hold(claim, place)
      return { kind: 'queued' }
    }
    if (tokens === 0) return { kind: 'renewed', contended }
    if (BigInt(claim.given + tokens) > TOKENS) return { kind: 'renewed', contended: true }
    return { ...this.give(claim, tokens), kind: 'held', contended }
  }

  private hold(claim: Claim, { contended }: Position): Extract<ClaimAnswer, { kind: 'held' }> {
    const first = claim.state === 'queued'
    claim.state = 'held'
    const block = first ? this.give(claim, claim.tokens) : { token: tokenOf(claim.node), count: claim.tokens }
    return { kind: 'held', ...block, contended }
  }

  private give(claim: Claim, count: number): { readonly token: bigint; readonly count: number } {
    const token = tokenOf(claim.node) + BigInt(claim.given)
    claim.given += count
    return { token, count }
  }

  /** A node went, or (a holder's watch) somebody came. */
  private async watchFired(id: string, gone: string): Promise<void> {
    const claim = this.claims.get(id)
    const { place } = claim ?? {}
    // The only one before us, as of a moment ago: nobody has to be asked.
    const next =
      claim?.state === 'queued' && place?.behind?.name === gone && isNextInLine(place.behind, place)
    if (next && isFresh(claim.proof, this.network.env)) this.push(claim, { ...place, behind: null, ahead: 0 })
    else if (claim !== undefined) await this.lookAgain(claim)
  }

  private async lookAgain(claim: Claim): Promise<void> {
    const { id } = claim
    const proof = momentOf(this.network.env)
    const seen = await this.ask('look', LOOK_TIMEOUT_MS, () => ({ standing: this.look(claim) }))
    if ('kind' in seen || this.claims.get(id) !== claim) return
    const place = seen.standing && placed(seen.standing)
    if (!place) return
    claim.place = place
    claim.proof = proof
    const { name, state } = claim
    if (state === 'held' && place.contended) return this.tell({ kind: 'contended', name, id })
    if (state === 'queued' && place.behind === null) this.push(claim, place)
  }

  private push(claim: Claim, place: Position): void {
    const { name, id } = claim
    claim.place = place
    claim.pushed = true
    const { token, count, contended } = this.hold(claim, place)
    this.tell({ kind: 'granted', name, id, token, count, contended })
  }

  /** The first question after a push: whether what is known answers it. */
  private pickUp(claim: Claim): boolean {
    const { pushed } = claim
    claim.pushed = false
    return pushed && claim.state === 'held' && isFresh(claim.proof, this.network.env)
  }

  private tell(event: StoreEvent): void {
    this.listener(event)
  }
}

const LOOK_TIMEOUT_MS = 400
const NOTHING_KNOWN = { given: 0, state: 'queued', place: null, proof: NEVER, pushed: false } as const

function placed({ node, children }: Standing): Position | null {
  const own = parseNode(node.name)
  return own && positionOf(children, own)
}

function tokenOf({ czxid }: SessionNode): bigint {
  return BigInt(czxid) * TOKENS
}

/** A copy: the runtime's own object changes while the request is under way. */
function request(of: ClaimRequest): ClaimRequest {
  const { name, id, weight, capacity, ttl, patience, tokens, whenBusy, owner } = of
  return { name, id, weight, capacity, ttl, patience, tokens, whenBusy, owner }
}
