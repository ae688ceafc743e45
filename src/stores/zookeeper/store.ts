import { printable } from '../../core/printing.ts'
import { ALL } from '../../core/contract.ts'
import type {
  Capabilities,
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  DowngradeAnswer,
  ListPage,
  ListQuery,
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
} from '../../core/contract.ts'
import { LOST, NOT_HELD, RELEASED, withoutNext } from './answers.ts'
import { capabilitiesFor } from './capabilities.ts'
import type { Claim, ClaimHost, ClaimState } from './claim.ts'
import type { Acl, SessionState } from './client/index.ts'
import { callSafely } from './client/call-safely.ts'
import { ZooKeeperError } from './client/index.ts'
import { now, setTimeout } from './client/time.ts'
import { Directories } from './directories.ts'
import { downgradeClaim } from './downgrade.ts'
import { Holders } from './holders.ts'
import { findForeign, inspectName, listNames, removeForeign } from './inspect.ts'
import { leaveForGood, leaveWhenOver } from './leave-for-good.ts'
import { Listeners } from './listeners.ts'
import { encodeName } from './names.ts'
import { PermitClaim } from './permit-claim.ts'
import { QueueClaim } from './queue-claim.ts'
import { renewClaim } from './renew.ts'
import type { ZkSession } from './zk-session.ts'
import { ZkSessions } from './zk-sessions.ts'
import type { StoreSettings } from './settings.ts'
import { Timeouts } from './timeouts.ts'
import { LATE, failed } from './failure.ts'
import { Withdrawn } from './withdrawn.ts'

const ELSEWHERE = 'The claim hangs on the session of another process, and only that can renew it'
const ANOTHER_NAME = 'This id is that of a claim for another name. Each claim needs its own.'
const LEAVE_AGAIN_MS = 1000
const SHORTENED = 'The servers have just made it shorter.'

/** Claims as ephemeral sequential nodes: the same queues as those of Apache Curator's locks. */
export class ZooKeeperStore implements Store, ClaimHost {
  readonly kind = 'zookeeper'
  /** Holders are told of the end of their session, or of a node that was removed, by whoever listens. */
  readonly listeningIsFree = true
  readonly capabilities: Capabilities
  readonly acl: readonly Acl[]
  readonly directories: Directories = new Directories()
  private readonly settings: StoreSettings
  private readonly zkSessions: ZkSessions
  private readonly timeouts = new Timeouts()
  private readonly claims = new Map<string, Claim>()
  /** What hung on a user's client whose session is over: gone with it, and nobody is left whom one could ask. */
  private readonly gone = new Set<string>()
  private readonly holders = new Holders(
    () => this.claims.values(),
    (claim) => this.expired(claim),
  )
  private readonly listeners = new Listeners()
  private readonly withdrawn = new Withdrawn()

  constructor(settings: StoreSettings) {
    this.settings = settings
    this.acl = settings.acl
    this.capabilities = capabilitiesFor(settings.maxSessionTimeout)
    this.zkSessions = new ZkSessions(settings, this.timeouts, (zkSession, state) =>
      this.seatChanged(zkSession, state),
    )
    if (settings.ttl !== undefined) this.zkSessions.open(settings.ttl)
  }

  /** Resolves when a session stands, or after that time. */
  async connected(timeout: number): Promise<void> {
    await this.zkSessions
      .any()
      .ready(now() + timeout)
      .catch(() => undefined)
  }

  claim(request: ClaimRequest, timeout: number): Promise<ClaimAnswer> {
    return this.timeouts.race(this.enter(request, now() + timeout), timeout, LATE)
  }

  renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    const deadline = now() + timeout
    const proofs = new Map<ZkSession, Promise<void>>()
    const renewed = requests.map((request) => {
      const claim = this.claimOf(request)
      if (claim === undefined)
        return this.gone.has(request.id) ? Promise.resolve(LOST) : this.renewForeign(request, timeout)
      return renewClaim(claim, request, this, { proofs, deadline })
    })
    return Promise.all(renewed.map((answer) => this.timeouts.race(answer, timeout, LATE)))
  }

  release(ref: ClaimRef, next: ClaimRequest | undefined, timeout: number): Promise<ReleaseResult> {
    const deadline = now() + timeout
    // Both leave in one flight, the deletion first: the answer to the second then tells of a queue without the old node.
    // Whoever is woken by the first looks at the queue a round trip later, and sees the second there.
    const removing = this.timeouts.race(this.remove(ref, deadline), timeout, LATE)
    if (next === undefined) return removing.then(withoutNext)
    const entering = this.timeouts.race(this.enter(next, deadline), timeout, LATE)
    return Promise.all([removing, entering]).then(([released, entered]) => ({ released, next: entered }))
  }

  withdraw(ref: ClaimRef, timeout: number): Promise<ReleaseAnswer> {
    this.withdrawn.add(ref.id)
    return this.timeouts.race(this.remove(ref, now() + timeout), timeout, LATE)
  }

  downgrade(ref: ClaimRef, timeout: number): Promise<DowngradeAnswer> {
    const answer = downgradeClaim(this.claimOf(ref), this, now() + timeout)
    return this.timeouts.race(answer, timeout, LATE)
  }

  watch(session: string, listener: StoreListener): Watch {
    return this.listeners.add(session, listener)
  }

  inspect(name: string, timeout: number): Promise<NameInfo | Unknown> {
    return this.zkSessions.ask((zk) => inspectName(zk, name, this.dirOf(name), this.claims), timeout)
  }

  list(query: ListQuery, timeout: number): Promise<ListPage | Unknown> {
    return this.zkSessions.ask((zk) => listNames(zk, this.settings.root, query), timeout)
  }

  /**
   * Holders are told before their nodes go. One that cannot be told, because its Holdfast was closed with `release: false`, believes in its
   * lease until that ends: so long its node stays, and with it the session.
   */
  async close(): Promise<void> {
    this.holders.stop()
    const claims = [...this.claims.values()]
    const believed = claims.filter(({ id, state }) => state === 'held' && !this.listeners.has(id))
    const staying = new Map<ZkSession, number>()
    for (const { zkSession, until } of believed)
      staying.set(zkSession, Math.max(until, staying.get(zkSession) ?? 0))
    for (const claim of claims) this.forget(claim)
    for (const claim of believed) leaveWhenOver(claim)
    const ownSeats = !('client' in this.settings.source)
    const others = claims.filter(
      (claim) => !believed.includes(claim) && (!ownSeats || staying.has(claim.zkSession)),
    )
    await Promise.all(others.map(leaveForGood))
    await this.zkSessions.close(staying)
    this.timeouts.stop()
    this.listeners.clear()
  }

  tell(id: string, event: StoreEvent): void {
    this.listeners.tell(id, event)
  }

  vanished(claim: Claim): void {
    const { state } = claim
    claim.state = 'leaving'
    this.tellOwner(claim, state)
    // What is left of it (a second node, a place at a gate) goes too. Until then it is not forgotten.
    this.expired(claim)
  }

  ends(claim: Claim): void {
    this.holders.expect(claim.until)
  }

  settled(claim: Claim): void {
    this.holders.add(claim)
  }

  revocationAsked({ name }: Claim): void {
    const { onRevocation } = this.settings
    if (onRevocation !== undefined) callSafely(() => onRevocation(name))
  }

  /** Nothing is waited for while connected, so that what is asked in one go leaves in one go, and in that order. */
  private enter(request: ClaimRequest, deadline: number): Promise<ClaimAnswer> {
    const zkSession = this.claims.has(request.id) ? undefined : this.zkSessions.free(request.ttl)
    if (zkSession === undefined || this.withdrawn.has(request.id)) return this.enterInTime(request, deadline)
    try {
      return this.proceed(this.newClaim(request, zkSession), deadline)
    } catch (error) {
      return Promise.resolve(failed(error))
    }
  }

  private async enterInTime(request: ClaimRequest, deadline: number): Promise<ClaimAnswer> {
    if (this.withdrawn.has(request.id)) return { kind: 'busy' }
    try {
      let claim = this.claims.get(request.id)
      if (claim !== undefined && claim.name !== request.name)
        throw new ZooKeeperError('BAD_ARGUMENTS', ANOTHER_NAME)
      if (claim?.state === 'leaving') {
        // Given up or run out, and asked for once more: what is left of it goes first.
        await claim.zkSession.ready(deadline)
        await this.leave(claim)
        claim = this.claims.get(request.id)
      }
      while (claim === undefined) {
        const taken = this.zkSessions.take(request.ttl, deadline)
        const zkSession = taken instanceof Promise ? await taken : taken
        // Given up while there was no server: nobody would look for what was made now.
        if (this.withdrawn.has(request.id)) return { kind: 'busy' }
        // Others may have waited for the same session.
        if (!zkSession.full) claim = this.newClaim(request, zkSession)
      }
      claim.whenBusy = request.whenBusy
      claim.heard(request)
      if (!claim.zkSession.connected) await claim.zkSession.ready(deadline)
      return await this.proceed(claim, deadline)
    } catch (error) {
      return failed(error)
    }
  }

  private proceed(claim: Claim, deadline: number): Promise<ClaimAnswer> {
    const { entering } = claim
    if (entering === null) return (claim.entering = this.entering(claim, deadline))
    // A grant rests on what left before this request came, and whoever asked counts from now: it is confirmed once more.
    return entering.then((answer) => (answer.kind === 'held' ? this.proceed(claim, deadline) : answer))
  }

  private entering(claim: Claim, deadline: number): Promise<ClaimAnswer> {
    const { zkSession, ttl } = claim
    return claim.enter(deadline).then(
      (answer) => {
        this.entered(claim)
        if (answer.kind === 'busy' || answer.kind === 'mismatch') this.drop(claim)
        else if (answer.kind === 'held' && !claim.lasting) return failed(zkSession.tooShort(ttl, SHORTENED))
        return answer
      },
      (error: unknown) => {
        this.entered(claim)
        return failed(error)
      },
    )
  }

  /** What is known of an id under another name is not about this claim. */
  private claimOf({ name, id }: ClaimRef): Claim | undefined {
    const claim = this.claims.get(id)
    return claim?.name === name ? claim : undefined
  }

  private entered(claim: Claim): void {
    claim.entering = null
    claim.answered()
    this.holders.expect(claim.until)
  }

  private newClaim(request: ClaimRequest, zkSession: ZkSession): Claim {
    const known = this.claims.get(request.id)
    if (known !== undefined) return known
    const permits = request.capacity > 1 && request.capacity < ALL
    const claim = new (permits ? PermitClaim : QueueClaim)(request, this.dirOf(request.name), zkSession, this)
    zkSession.add(claim)
    this.claims.set(request.id, claim)
    this.holders.expect(claim.until)
    return claim
  }

  private remove(ref: ClaimRef, deadline: number): Promise<ReleaseAnswer> {
    const claim = this.claimOf(ref)
    if (claim === undefined && this.gone.has(ref.id)) return Promise.resolve(NOT_HELD)
    if (claim === undefined) return this.removeForeign(ref, deadline).catch(failed)
    const { zkSession } = claim
    // It has run out and is being removed: whoever does that lets the process go when it is done, and this is not.
    const again = claim.state === 'leaving'
    claim.state = 'leaving'
    claim.removing = true
    const removing = (): Promise<boolean> =>
      zkSession.connected ? this.leave(claim) : zkSession.ready(deadline).then(() => this.leave(claim))
    const leaving = again ? zkSession.asking(removing) : removing()
    return leaving.then(
      (there) => {
        claim.removing = false
        return there ? RELEASED : NOT_HELD
      },
      (error: unknown) => {
        claim.removing = false
        return failed(error)
      },
    )
  }

  /** Made by another process, or before this one began: an administrator's release. */
  private async removeForeign({ name, id }: ClaimRef, deadline: number): Promise<ReleaseAnswer> {
    const removed = await this.zkSessions.ask(
      (zk) => removeForeign(zk, this.dirOf(name), id),
      deadline - now(),
    )
    return typeof removed === 'object' ? removed : removed ? RELEASED : NOT_HELD
  }

  /** Made by another process, perhaps: only that can renew it, and only that may say that it is lost. */
  private async renewForeign({ name, id }: ClaimRef, timeout: number): Promise<RenewAnswer> {
    const found = await this.zkSessions.ask((zk) => findForeign(zk, this.dirOf(name), id), timeout)
    if ('kind' in found) return found
    return found.length === 0 ? LOST : failed(new ZooKeeperError('API_ERROR', ELSEWHERE))
  }

  /** Takes the nodes away. If that fails now, it is done when the connection is back, or a little later. */
  private async leave(claim: Claim): Promise<boolean> {
    claim.state = 'leaving'
    try {
      const there = await claim.leave()
      this.drop(claim)
      return there
    } catch (error) {
      if (claim.zkSession.connected) this.leaveLater(claim)
      throw error
    }
  }

  /** A server with too much to do refused it. Perhaps nobody asks again, and the session lives on. */
  private leaveLater(claim: Claim): void {
    if (claim.refused) return
    claim.refused = true
    const again = (): void => {
      const { zkSession, removing } = claim
      claim.refused = false
      if (zkSession.claims.has(claim) && zkSession.connected && !removing) this.expired(claim)
    }
    setTimeout(again, LEAVE_AGAIN_MS).unref()
  }

  private drop(claim: Claim): void {
    claim.state = 'leaving'
    claim.zkSession.delete(claim)
    if (this.claims.get(claim.id) === claim) this.claims.delete(claim.id)
  }

  private forget(claim: Claim): void {
    const { state } = claim
    this.drop(claim)
    this.tellOwner(claim, state)
  }

  /** A claim is not ours any more; tell whoever believes otherwise. */
  private tellOwner({ id, name }: Claim, state: ClaimState): void {
    if (state === 'held') this.tell(id, { kind: 'revoked', name, id })
    else if (state === 'queued') this.listeners.gap([id])
  }

  private expired(claim: Claim): void {
    this.leave(claim).catch(() => undefined)
  }

  private seatChanged(zkSession: ZkSession, state: SessionState): void {
    const claims = [...zkSession.claims]
    const queued = claims.filter((claim) => claim.state === 'queued').map(({ id }) => id)
    if (zkSession.over) {
      const held = claims.filter((claim) => claim.state === 'held')
      // All are forgotten before any is told: whoever hears of it may ask about the others at once.
      for (const claim of claims) this.drop(claim)
      if ('client' in this.settings.source) for (const { id } of claims) this.gone.add(id)
      for (const { id, name } of held) this.tell(id, { kind: 'revoked', name, id })
      this.listeners.gap(queued)
    } else if (state === 'connected') {
      for (const claim of claims) {
        // A server that allows less took the session over: it could end before whoever holds the lock thinks.
        if (claim.state === 'held' && !claim.lasting) this.vanished(claim)
        else if (claim.state !== 'leaving') claim.resume()
        else if (!claim.removing) this.expired(claim)
      }
      this.listeners.gap(queued)
    }
  }

  private dirOf(name: string): string {
    return `${this.settings.root}/${encodeName(name)}`
  }
}

// Not its client, its password or the ids of claims.
printable(ZooKeeperStore, 'Store', ({ kind }) => ({ kind }))
