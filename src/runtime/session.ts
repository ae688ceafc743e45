import type { ClaimRef, MaybePromise, Store, StoreEvent, Unknown, Watch } from '../core/contract.ts'
import { EVENT, GUARDS, inShort, WATCH } from '../core/answers.ts'
import type { Shape } from '../core/answers.ts'
import { trustedStores } from '../core/trusted-stores.ts'
import { endWatch, unheard } from '../core/unheard.ts'
import type { Claim } from './claim.ts'
import { claimOf, NO_CLAIMS } from './claims.ts'
import type { Claims } from './claims.ts'
import { Cleanup } from './cleanup.ts'
import { Clock } from './clock.ts'
import type { ClockOptions } from './clock.ts'
import { Closing } from './closing.ts'
import type { ClosePlan, CloseResult } from './closing.ts'
import { Deadline, Deadlines } from './deadlines.ts'
import type { TimeSource } from './deadlines.ts'
import type { Env } from './env.ts'
import { mayHurry } from './hurry.ts'
import type { Hurried } from './hurry.ts'
import { JumpWatch } from './jump-watch.ts'
import { laneKind, sameSpec } from './lane-kind.ts'
import type { LaneKind, LaneSpec } from './lane-kind.ts'
import { Lane } from './lane.ts'
import { LoopTurns } from './loop-turns.ts'
import { Requests } from './requests.ts'
import { Strangers } from './strangers.ts'
import { Upkeep } from './upkeep.ts'

export interface TurnBudget {
  /** Sections that a process may run in one turn while others wait. */
  readonly count: number
  /** Milliseconds that a turn may take while others wait. */
  readonly ms: number
}

export interface SessionOptions {
  readonly env: Env
  readonly clock: ClockOptions
  readonly owner: string
  readonly patience: number
  readonly turn: TurnBudget
  readonly requestTimeout: number
}

/** How soon, and how seldom at the most, a store is asked again that cannot tell us anything by itself. */
const POLL_MS = { shortest: 5, longest: 500, growth: 1.25 }

/** So many waits end before the event loop has its turn again: each makes an error and asks the store to forget a claim. */
const ENDS_AT_ONCE = 500

/** How soon we ask again to listen. */
const LISTEN_AGAIN_MS = 1000
/** A store that tells us anything at all will most likely have begun by then. */
const HEARD_WITHIN_MS = 500

/** One client's life at a store: its clock, its timers, its claims by name, and what the store tells it. */
export class Session {
  readonly store: Store
  /** See core/trusted-stores.ts. */
  readonly trusted: boolean
  readonly env: Env
  readonly clock: Clock
  /** For waits and pauses, which belong to nobody but us: the monotonic clock as it is. */
  readonly steady: TimeSource
  readonly id: string
  readonly owner: string
  readonly patience: number
  readonly turn: TurnBudget
  readonly requestTimeout: number
  /** The ends of callers' waits. They keep the process alive: somebody waits for the answer. */
  readonly waits: Deadlines
  /** Moments that must not be missed: the ends of leases, and pauses between attempts. */
  readonly expiries: Deadlines
  readonly loop: LoopTurns
  readonly upkeep: Upkeep
  readonly cleanup: Cleanup
  readonly requests: Requests
  private readonly strangers: Strangers
  closing: Closing | null = null
  /** Nothing is renewed any more. */
  lettingGo = false
  /** The lanes that are in use, by name; a name's further lanes hang on its first one. */
  private readonly lanes = new Map<string, Lane>()
  /** Claims that are being given up, until the store has answered. */
  leaving: Claims = NO_CLAIMS
  /** Claims that nobody wants any more, of which the store has not answered the request. */
  readonly unwanted: Set<Claim> = new Set()
  private resting: Lane | null = null
  private lastKind: LaneKind | null = null
  /** Written by the watch. */
  watched = false
  private readonly jumps: JumpWatch
  private readonly idPrefix: string
  private claimsMade = 0
  /**
   * From its beginning on, everything that the store says is heard: one more each time that we began to listen, or may have missed
   * something. 0 while we do not listen.
   */
  era = 0
  private watch: Watch | 'starting' | null = null
  /** Those that came when they were given up. They end with the others: a store may take them for one, by the session that they are of. */
  private readonly lateWatches: Watch[] = []
  /** When the store was last asked to let us listen, and when it last would not. */
  private listeningSince = -Infinity
  private deafSince = -Infinity
  /** By messages that others may have been missed. */
  private readonly gaps: Hurried = { hurriedUntil: 0 }

  constructor(store: Store, { env, clock, owner, patience, turn, requestTimeout }: SessionOptions) {
    this.store = store
    this.trusted = trustedStores.has(store)
    this.env = env
    this.clock = new Clock(env, clock)
    this.loop = new LoopTurns(env, this.clock)
    this.steady = { now: () => env.mono(), onJump: () => {} }
    this.id = env.randomId()
    this.jumps = JumpWatch.of(env)
    this.idPrefix = `${this.id}.`
    this.owner = owner
    this.patience = patience
    this.turn = turn
    this.requestTimeout = requestTimeout
    const onFirst = (): void => this.attend()
    this.waits = new Deadlines(this.steady, env, { background: false, atOnce: ENDS_AT_ONCE, onFirst })
    this.expiries = new Deadlines(this.clock, env, { background: true, onFirst })
    this.requests = new Requests({
      store: store.kind,
      timeout: requestTimeout,
      onFirst,
      onAnswer: () => this.closing?.look(),
      onLateWatch: (watch) => {
        this.lateWatches.push(watch)
        if (this.closed) this.stopWatching()
      },
    })
    this.upkeep = new Upkeep(this)
    this.cleanup = new Cleanup(this)
    this.strangers = new Strangers(this)
  }

  /** Something is held or waited for: from now on, and until there is nothing, the clock is looked at. */
  attend(): void {
    if (!this.watched) this.jumps.add(this)
  }

  get inUse(): boolean {
    return this.waits.size > 0 || this.expiries.size > 0 || this.requests.size > 0 || !this.upkeep.idle
  }

  nextClaimId(): string {
    return this.idPrefix + this.claimsMade++
  }

  /** Asks the store; see requests.ts. */
  ask<T>(
    shape: Shape,
    call: () => MaybePromise<T>,
    settle: (answer: T | Unknown, atOnce: boolean) => void,
  ): void {
    this.requests.ask(shape, call, settle)
  }

  /** Time may have jumped, and the store may have forgotten what it was asked. */
  look(): void {
    this.clock.now()
    this.requests.look()
  }

  get closed(): boolean {
    return this.closing !== null
  }

  /** Once it has begun, a further call can only bring its end forward. */
  close(plan: ClosePlan, closeStore: () => MaybePromise<void>): Promise<CloseResult> {
    if (this.closing === null) {
      this.closing = new Closing(this, plan, closeStore)
      this.closing.begin(plan)
    } else {
      this.closing.hasten(plan)
    }
    return this.closing.done
  }

  /** No timer, no listener and no request comes from here any more, but for the ends of leases that were left to run out. */
  stop(): void {
    this.stopWatching()
    this.cleanup.stop()
    this.upkeep.stop()
    for (const deadlines of [this.waits, this.expiries]) deadlines.stop()
  }

  /** Waits for the promise, and no longer than so many milliseconds. */
  async within(ms: number, promise: Promise<unknown>): Promise<void> {
    const enough = new Pause()
    this.waits.set(enough, this.env.mono() + ms, ms)
    try {
      await Promise.race([promise, enough.over])
    } finally {
      enough.cancel()
      this.waits.stop()
    }
  }

  /** One object for all locks that are alike, as most of a process's locks are. */
  kindOf(spec: LaneSpec): LaneKind {
    if (this.lastKind === null || !sameSpec(this.lastKind, spec)) this.lastKind = laneKind(spec)
    return this.lastKind
  }

  /** The lane for these claims. Pass the one you had before: it is used again unless another took its place. */
  lane(name: string, kind: LaneKind, known: Lane | null): Lane {
    const first = this.lanes.get(name)
    for (let lane = first ?? null; lane !== null; lane = lane.sibling) {
      if (lane === known || sameSpec(lane.kind, kind)) return lane
    }
    const lane = known ?? new Lane(this, name, kind)
    this.enlist(lane)
    return lane
  }

  /** From now on the lane is one of those that are told, renewed and closed. */
  enlist(lane: Lane): void {
    lane.sibling = this.lanes.get(lane.name) ?? null
    lane.listed = true
    this.lanes.set(lane.name, lane)
  }

  /** A lane has nothing to do any more. The last such one is kept: it is likely to be the next one needed. */
  rest(lane: Lane): void {
    if (lane === this.resting) return
    if (this.resting?.idle === true) this.forget(this.resting)
    this.resting = lane
  }

  private forget(lane: Lane): void {
    lane.listed = false
    const first = this.lanes.get(lane.name)
    if (first === lane) {
      if (lane.sibling === null) this.lanes.delete(lane.name)
      else this.lanes.set(lane.name, lane.sibling)
    } else {
      let before = first
      while (before !== undefined && before.sibling !== lane) before = before.sibling ?? undefined
      if (before !== undefined) before.sibling = lane.sibling
    }
    lane.sibling = null
  }

  /** See Store. In doubt it does: then the claim goes to the next one by way of the store, which knows. */
  guards(claimId: string): boolean {
    const { store, requests } = this
    if (store.guards === undefined) return false
    try {
      const answer: unknown = store.guards(claimId)
      if (GUARDS.fits(answer)) return answer as boolean
      requests.broken(GUARDS, `answered ${inShort(answer)}`)
      unheard(answer)
    } catch (cause) {
      requests.broken(GUARDS, 'threw', cause)
    }
    return true
  }

  /** Whether the store would tell us of a queue behind our claims. */
  get pushes(): boolean {
    const { queue, wakeups } = this.store.capabilities
    return queue && wakeups === 'push'
  }

  /** Begins to listen. Nobody waits for that: until then the store is asked again and again. */
  listen(): void {
    if (this.mayListen && this.env.mono() - this.deafSince >= LISTEN_AGAIN_MS) this.startWatching()
  }

  /**
   * Milliseconds for which a waiter need not ask by itself: it stands in line as soon as the store lets us listen. Only the first time: when a
   * store will that did not, nobody knows. By chance up to twice as long: there may be thousands of waiters.
   */
  get untilHeard(): number {
    if (this.watch !== 'starting' || this.deafSince > -Infinity || !this.store.capabilities.queue) return 0
    const rest = this.listeningSince + HEARD_WITHIN_MS - this.env.mono()
    return rest > 0 ? rest * (1 + this.env.random()) : 0
  }

  /** We do not, and the store has something to tell. */
  get mayListen(): boolean {
    const { queue, wakeups } = this.store.capabilities
    return this.watch === null && !this.closed && (queue || wakeups === 'push')
  }

  get watching(): boolean {
    return this.watch !== null && this.watch !== 'starting'
  }

  /** Whether a claim may stand in line at the store: there is a line, and we would hear of a grant. */
  get canQueue(): boolean {
    return this.watching && this.store.capabilities.queue && !this.closed
  }

  /** Nobody stands in line and nobody is told anything: whoever asks first after a release has it. */
  get unordered(): boolean {
    const { queue, wakeups } = this.store.capabilities
    return !queue && wakeups === 'poll'
  }

  /** Has the store tell this session what happens to its claims. Must stand before the first claim that may queue. */
  private startWatching(): void {
    this.watch = 'starting'
    this.listeningSince = this.env.mono()
    this.ask<Watch | Unknown>(
      WATCH,
      () => this.store.watch(this.id, (event) => this.told(event), this.requestTimeout),
      (answer) => {
        this.watch = answer.kind === 'watching' ? answer : null
        if (this.watching) this.era++
        else this.deafSince = this.env.mono()
        if (this.closed) this.stopWatching()
        // Waiters that ask again and again may stand in line from now on.
        if (this.canQueue) for (const lane of this.everyLane()) lane.told({ kind: 'freed', name: lane.name })
        if (this.watching) this.catchUp()
      },
    )
  }

  /**
   * A queue that formed while we did not listen was told to nobody: ask about what others here wait for, or may share. Not about what is
   * not handed on: to ask is to renew.
   */
  private catchUp(): void {
    const concerned = this.everyLane().filter((lane) => lane.renew && (lane.waiting > 0 || lane.shared))
    this.upkeep.renewAllNow(concerned.flatMap((lane) => lane.claimsIn('held')))
  }

  /** Nothing that was asked for can turn up at the store any more. */
  get quiet(): boolean {
    return this.requests.size === 0 && this.cleanup.done
  }

  private stopWatching(): void {
    const { watch } = this
    this.watch = null
    const watches = this.lateWatches.splice(0)
    if (watch !== null && watch !== 'starting') watches.push(watch)
    for (const each of watches)
      endWatch(each, (how, cause) => this.requests.broken(WATCH, `${how} when it was to stop`, cause))
  }

  /** Milliseconds until a waiter shows again that it is there, and asks. */
  heartbeat(claim: Claim): number {
    const keptFor = Math.min(claim.ttl, this.patience) / 3
    return this.store.capabilities.wakeups === 'push' ? keptFor : Math.min(this.pollDelay(claim), keptFor)
  }

  /**
   * Who has waited long will not mind waiting a little longer. Anything from nothing to twice the mean: claims that were
   * refused in the same moment, because they split the votes of a quorum, must not come back together.
   */
  pollDelay({ attempts }: Pick<Claim, 'attempts'>): number {
    const { shortest, longest, growth } = POLL_MS
    return Math.ceil(Math.min(shortest * growth ** attempts, longest) * 2 * this.env.random()) + 1
  }

  /** A list of its own: whoever walks along it makes lanes come and go. */
  everyLane(): readonly Lane[] {
    return [...this.lanes.values()].flatMap(withSiblings)
  }

  private told(event: StoreEvent): void {
    if (!EVENT.fits(event)) return void this.requests.broken(EVENT, `told ${inShort(event)}`)
    if (event.kind === 'gap') {
      // A store may say so before it lets us listen, or when it was given up: readers would count on hearing of a queue.
      if (this.watching) this.era++
      if (!mayHurry(this.gaps, this.clock.now())) return
      const waiting = this.everyLane().filter((lane) => lane.claimsIn('queued').length > 0)
      this.upkeep.renewAllNow(waiting.flatMap((lane) => lane.claimsIn('queued')))
      this.catchUp()
      return this.strangers.look(new Set(waiting.map(({ name }) => name)))
    }
    if (event.kind === 'freed') {
      const first = this.lanes.get(event.name)
      if (first !== undefined) for (const lane of withSiblings(first)) lane.told(event)
      return
    }
    const lane = this.laneOf(event)
    if (lane !== null) lane.told(event)
    else if (event.kind === 'granted') this.strangers.granted(event)
  }

  /** The lane that has the claim. */
  private laneOf({ name, id }: ClaimRef): Lane | null {
    let lane = this.lanes.get(name) ?? null
    while (lane !== null && claimOf(lane.claims, id) === undefined) lane = lane.sibling
    return lane
  }

  /** Whether a claim was made here, by its id. */
  owns(id: string): boolean {
    return id.startsWith(this.idPrefix)
  }

  /** Whether somebody here asks for the claim, waits for it, holds it or is giving it up. */
  knows(name: string, id: string): boolean {
    return claimOf(this.leaving, id) !== undefined || this.laneOf({ name, id }) !== null
  }
}

class Pause extends Deadline {
  due: () => void = () => {}
  readonly over: Promise<void> = new Promise((resolve) => (this.due = resolve))
}

/** All lanes of a name, as they are now. */
function withSiblings(first: Lane): readonly Lane[] {
  const lanes: Lane[] = []
  for (let lane: Lane | null = first; lane !== null; lane = lane.sibling) lanes.push(lane)
  return lanes
}
