import { setTimeout as sleep } from 'node:timers/promises'

import type { Capabilities, NameInfo, Store } from '../../core/contract.ts'
import type { StoreOptions } from '../../open.ts'
import { holdsOf } from '../../testkit/holds.ts'
import { Random } from '../../testkit/random.ts'
import { Resource } from '../resource/process.ts'
import { LiveClient } from './client.ts'
import { Diary } from './diary.ts'
import type { ErrorRecord, Evidence, LabName, Refusal } from './evidence.ts'
import type { NemesisFacts } from './nemesis.ts'
import { factsOf } from './nemesis.ts'
import { opened } from './library.ts'
import type { Foreign } from './library.ts'
import { Onlooker } from './onlooker.ts'
import type { ClockHandle, ServerHandle } from './servers.ts'
import { Way } from './way.ts'
import type { FromWorker, Library, Manner, Meeting, Place } from './worker-protocol.ts'
import { MANNERS } from './worker-protocol.ts'
import type { ViolationRecord } from '../record.ts'

/** What can be done to a server from inside, by whoever may. */
export interface Admin {
  /** Forgets the scripts that clients count on. */
  flushScripts?(): Promise<void>
  /** Ends every client's connection. */
  dropConnections?(): Promise<void>
  /** Kills the server that leads, and resolves when another one does and all are there again. */
  failover?(): Promise<void>
}

/** What a run is made on. */
export interface Stage {
  /** As the report calls it. */
  readonly store: string
  readonly url: string
  /** Of a lock server. */
  readonly credentials?: StoreOptions
  readonly ttl: number
  readonly clients: number
  /** Of the mutexes; where the store has them, a read-write lock and a semaphore are used beside the first of them. */
  readonly names: readonly [string, ...string[]]
  /** holdfast with something broken in it. */
  readonly library?: Library
  /** Another library than holdfast. */
  readonly foreign?: Foreign
  /** Milliseconds by which the store may keep a grant for longer than its ttl. */
  readonly lateExpiry?: number
  /** Given by whoever started the server, and may hurt it. */
  readonly server?: ServerHandle
  readonly clock?: ClockHandle
  readonly admin?: Admin
  /** Another Node for the clients. */
  readonly execPath?: string
}

/** A process takes its time to start where many others want the same processors. */
const START_MS = 60_000
/** How long a client that was told to may take to be given a lock, beyond the longest lease. */
const TURN_MS = 10_000
/** And to be given one that nobody else wants. */
const MEET_MS = 5000
/** How much each may do until all have come. */
const MOST_STEPS = 20
const ANSWER_MS = 5000
/** How long closing may take beyond the longest lease. */
const CLOSE_MS = 3000
/** And how long its connections may be seen after it. */
const HANG_UP_MS = 2500

const PERMITS = 3
/** How somebody asks for what is full. */
const IN_VAIN: readonly Manner[] = ['try', 'time out', 'give up', 'time out']
/** What every library has. */
const PLAIN: readonly [Manner, ...Manner[]] = ['wait', 'try']

/** A fault found nothing to strike. A run without its fault proves nothing. */
export class Missed extends Error {
  override name = 'Missed'
}

/** A run under way: the clients, their ways to the store, the resource, and what is written down. */
export class Scene {
  readonly stage: Stage
  readonly random: Random
  readonly diary: Diary = new Diary()
  readonly clients: LiveClient[] = []
  readonly noise: string[] = []
  readonly store: Store
  readonly resource: Resource
  readonly names: readonly [LabName, ...LabName[]]
  readonly onlooker: Onlooker
  readonly errors: ErrorRecord[] = []
  readonly refusals: Refusal[] = []
  /** What was waited for in vain. */
  readonly stuck: ViolationRecord[] = []
  readonly missed: { readonly kind: string; readonly why: string }[] = []
  private readonly watchers = new Set<() => void>()
  private healedAt = 0

  private constructor(stage: Stage, seed: number, store: Store, resource: Resource) {
    this.stage = stage
    this.random = new Random(seed)
    this.store = store
    this.resource = resource
    this.names = namesOf(stage, this.capabilities)
    this.onlooker = new Onlooker(this)
  }

  static async open(stage: Stage, seed: number): Promise<Scene> {
    const store = await opened(stage.url, stage.credentials)
    const scene = new Scene(stage, seed, store, await Resource.start())
    try {
      await Promise.all(Array.from({ length: stage.clients }, () => scene.spawn()))
      return scene
    } catch (error) {
      await scene.close()
      throw error
    }
  }

  get capabilities(): Capabilities {
    return this.stage.foreign?.capabilities ?? this.store.capabilities
  }

  /** How long the store may keep what a dead client held. */
  get expiry(): number {
    return this.stage.ttl + (this.stage.lateExpiry ?? 0)
  }

  get working(): readonly LiveClient[] {
    return this.clients.filter(({ state }) => state === 'working')
  }

  /** Another client. */
  async spawn(): Promise<LiveClient> {
    const { url, credentials, ttl, foreign, execPath = process.execPath } = this.stage
    const library = foreign?.library ?? this.stage.library
    const names = this.names.filter(({ meeting }) => meeting === undefined) as unknown as Scene['names']
    const way = await Way.open(url)
    const order = {
      do: 'begin' as const,
      label: `client ${this.clients.length + 1}`,
      url: way?.url ?? url,
      ...(credentials === undefined ? {} : { credentials }),
      ...(library === undefined ? {} : { library }),
      manners: foreign === undefined ? MANNERS : PLAIN,
      names,
      ttl,
      patience: ttl,
      requestTimeout: Math.max(300, Math.ceil(ttl / 3)),
      resourcePort: this.resource.port,
      restMs: this.capabilities.queue ? 10 : 400,
      seed: this.random.uint32(),
    }
    let failure: string | undefined
    const events = {
      heard: (from: LiveClient, message: FromWorker): void => {
        if (message.kind === 'failed') failure = message.message
        this.heard(from, message)
      },
      now: () => this.diary.now(),
    }
    const client = new LiveClient(order, way, events, execPath)
    this.clients.push(client)
    const begun = await this.until(() => client.state !== 'starting' || failure !== undefined, START_MS)
    if (!begun || client.state !== 'working') {
      const { how = 'no sign' } = client.record.exit ?? {}
      // It could not load its own program.
      const built = how === 'exit code 1' ? ' (if `npm run build` ran meanwhile, run this again)' : ''
      throw new Error(`${client.label} did not start: ${failure ?? `${how}${built}`}`)
    }
    return client
  }

  /** Whether it came about in time. Looked at whenever a client says something. */
  until(condition: () => boolean, timeout: number): Promise<boolean> {
    if (condition()) return Promise.resolve(true)
    return new Promise((resolve) => {
      const settle = (result: boolean): void => {
        clearTimeout(timer)
        this.watchers.delete(look)
        resolve(result)
      }
      const look = (): void => void (condition() && settle(true))
      const timer = setTimeout(() => settle(condition()), timeout)
      this.watchers.add(look)
    })
  }

  /** A client that has a mutex and stands still at this place until it is told to go on. */
  async lingerer(where: Place): Promise<{ readonly client: LiveClient; readonly name: string }> {
    const client = this.anyone()
    client.send({ do: 'linger', where })
    const over = (): boolean => client.lingering !== undefined || client.state !== 'working'
    await this.until(over, this.expiry + TURN_MS)
    const { lingering: name } = client
    if (name !== undefined) return { client, name }
    this.goOn(client)
    throw new Missed(`${client.label} was to be hurt while it holds the lock, and was not given it`)
  }

  /** The kinds of locks that there are. */
  get kinds(): readonly LabName['kind'][] {
    return [...new Set(this.names.map(({ kind }) => kind))]
  }

  /** Lets somebody hold a lock of this kind for longer than any lease lasts by itself. */
  async longSection(kind: LabName['kind'], ttls: number = 1.15): Promise<void> {
    if (this.working.length === 0) return
    const client = this.anyone()
    const { longSections: before } = client
    const ms = Math.ceil(Math.max(this.expiry * 1.15, this.stage.ttl * ttls)) + 200
    client.send({ do: 'long', kind, ms })
    const over = (): boolean => client.longSections > before || client.state !== 'working'
    await this.until(over, ms + this.expiry + TURN_MS)
  }

  /**
   * Lets as many hold a lock at once as it is for, and one more try. That they are not given it is a finding, and so is that the last
   * one is. Whether they would meet by themselves depends on how many sections the machine has the time for.
   */
  async meetings(): Promise<void> {
    for (const at of this.names) {
      if (at.meeting !== true) continue
      await this.meet(at)
      // One may have as much as all of them.
      if (at.kind === 'semaphore') await this.meet(at, at.capacity)
    }
  }

  private async meet(at: LabName, permits: number = 1): Promise<void> {
    const { name, capacity = Infinity } = at
    const { working } = this
    const party = working.slice(0, Math.min(capacity / permits, Math.max(2, working.length - 1)))
    const there = (): LiveClient[] => party.filter(({ lingering }) => lingering === name)
    const come = async (who: readonly LiveClient[], as: Meeting['as']): Promise<void> => {
      for (const client of who) client.send({ do: 'meet', at, as, permits })
      await this.arrive(who, name)
      const all = (): boolean =>
        who.every(({ lingering, state }) => lingering === name || state !== 'working')
      await this.until(all, this.expiry + MEET_MS)
    }
    // Whoever writes first and goes on as a reader is one of them.
    const writes = at.kind === 'read-write' && this.store.downgrade !== undefined ? 1 : 0
    await come(party.slice(0, writes), 'a writer first')
    await come(party.slice(writes), 'one of them')
    const late = party.filter(({ waitsFor }) => waitsFor === name).map(({ label }) => label)
    const { length: held } = there()
    if (late.length > 0 && held > 0) {
      const message = `"${name}" was held by ${held} and not given to ${late.join(', ')}, although there was room`
      this.stuck.push({ check: 'throughput', message, at: this.diary.now(), clients: late })
    }
    await this.onlooker.lookOnce()
    if (held > 0) await this.listed(name)
    const [last] = working.slice(party.length)
    if (last !== undefined) await this.oneTooMany(last, at)
    for (const client of working) this.goOn(client)
  }

  /**
   * Those who stand still hold it until they are told to go on: it is among the names of the store. Where that takes long to answer, what
   * they had may have been lost meanwhile.
   */
  private async listed(name: string): Promise<void> {
    const asked = process.hrtime.bigint()
    let cursor: string | undefined
    do {
      const page = await this.store.list({ prefix: name, cursor }, ANSWER_MS)
      if ('kind' in page || page.names.includes(name)) return
      cursor = page.cursor
    } while (cursor !== undefined)
    const answered = process.hrtime.bigint()
    const holds = holdsOf(this.diary.history).filter((hold) => hold.name === name)
    if (!holds.some(({ from, to }) => from < asked && to > answered)) return
    const message = `the store does not list "${name}", which is held`
    this.stuck.push({ check: 'inspection', message, at: this.diary.now() })
  }

  /**
   * Each has a section to end before it comes, and may have to wait for that of another. That takes as long as the machine does, so it is
   * measured by what all of them do meanwhile.
   */
  private async arrive(who: readonly LiveClient[], name: string): Promise<void> {
    const { working } = this
    const here = (): boolean =>
      who.every(
        ({ lingering, waitsFor, state }) => lingering === name || waitsFor === name || state !== 'working',
      )
    const doing = (): string => working.map(({ op, waitsFor }) => `${op} ${waitsFor}`).join()
    for (let steps = 0; steps < MOST_STEPS * working.length; steps++) {
      const before = doing()
      await this.until(() => here() || doing() !== before, this.expiry + MEET_MS)
      if (here() || doing() === before) return
    }
  }

  /**
   * Whoever comes when it is full is refused at once, and waits in vain. What it is given instead is seen by who else has it. Whether
   * waits are in vain by themselves depends on how much the machine has to do.
   */
  private async oneTooMany(client: LiveClient, at: LabName): Promise<void> {
    for (const manner of IN_VAIN) {
      const before = client.gaveUp.get(at.name)
      client.send({ do: 'meet', at, as: 'one too many', manner })
      const given = (): boolean => client.lingering === at.name || client.state !== 'working'
      const over = (): boolean => client.gaveUp.get(at.name) !== before || given()
      if (!(await this.until(over, this.expiry + MEET_MS)) || given()) return
    }
  }

  /** One of those that are at work. */
  anyone(): LiveClient {
    const { working } = this
    const client = working[this.random.below(working.length)]
    if (client === undefined) throw new Missed('no client is left to be hurt')
    return client
  }

  goOn(client: LiveClient): void {
    client.lingering = undefined
    client.send({ do: 'go' })
  }

  /** Others than the victim are given the lock that it has, so many times. That they are not is a finding. */
  async othersGet(
    { client, name }: { readonly client: LiveClient; readonly name: string },
    times: number,
    timeout: number,
  ): Promise<void> {
    const count = (): number =>
      this.clients.reduce((sum, each) => sum + (each === client ? 0 : (each.granted.get(name) ?? 0)), 0)
    const before = count()
    const nobody = (): boolean => this.working.every((each) => each === client)
    await this.until(() => count() >= before + times || nobody(), timeout)
    if (count() >= before + times) return
    const message = `"${name}" was given to others ${count() - before} of ${times} times in the ${Math.round(timeout)} ms after its holder, ${client.label}, was hurt`
    this.stuck.push({ check: 'liveness', message, at: this.diary.now() })
  }

  /** Everything in its place again: whatever a fault left behind. */
  async heal(): Promise<void> {
    this.healedAt = this.diary.now()
    await this.stage.server?.resume().catch(() => undefined)
    for (const client of this.clients) {
      client.way?.heal()
      await client.way?.accept()
      client.resume()
      if (client.lingering !== undefined) this.goOn(client)
    }
  }

  async inspect(name: string): Promise<NameInfo | undefined> {
    const { foreign } = this.stage
    if (foreign !== undefined) return seenFrom(name, await foreign.inspect(name))
    const info = await this.store.inspect(name, ANSWER_MS)
    return 'kind' in info ? undefined : info
  }

  /** Lets the clients end in order; those that do not are killed. */
  async finish(): Promise<void> {
    for (const client of this.working) client.send({ do: 'finish' })
    await this.until(() => this.working.length === 0, this.expiry + CLOSE_MS)
    // One more look, at what those who have gone in order left behind.
    await this.onlooker.lookOnce()
    if (this.stage.foreign === undefined) await this.hungUp()
    await Promise.all(this.clients.map((client) => client.kill()))
    for (const { way } of this.clients) await way?.close()
  }

  /** Whoever is closed has no connection: one that is left would keep a program from its end. */
  private async hungUp(): Promise<void> {
    const open = (): readonly LiveClient[] =>
      this.clients.filter(({ state, way }) => state === 'done' && (way?.connections ?? 0) > 0)
    const end = performance.now() + HANG_UP_MS
    while (open().length > 0 && performance.now() < end) await sleep(20)
    for (const { label, way } of open()) {
      const message = `${label}: ${way?.connections} of its connections were open ${HANG_UP_MS} ms after close() had ended`
      this.stuck.push({ check: 'closing', message, at: this.diary.now(), clients: [label] })
    }
  }

  /** Takes away what is left in the lab's own names: those who could give it back are gone. */
  async tidy(): Promise<void> {
    for (const { name } of this.names) {
      const info = await this.inspect(name)
      for (const { id } of [...(info?.holders ?? []), ...(info?.waiters ?? [])]) {
        await this.store.withdraw({ name, id }, ANSWER_MS)
      }
    }
  }

  /** Everything that was seen. */
  async evidence(nemeses: readonly NemesisFacts[], remains: readonly string[]): Promise<Evidence> {
    const { diary, stage, capabilities, names, errors, refusals, noise, missed, stuck, healedAt } = this
    const { looks, stalls } = this.onlooker
    return {
      format: 1,
      settings: {
        ttl: stage.ttl,
        lateExpiry: stage.lateExpiry ?? 0,
        names,
        nemeses: nemeses.map(factsOf),
        capabilities,
        ...(stage.foreign?.tokens === false && { tokens: false }),
      },
      began: diary.began,
      healedAt,
      endedAt: diary.now(),
      history: diary.history,
      notes: diary.notes,
      faults: diary.faults,
      missed,
      clients: this.clients.map(({ record }) => record),
      errors,
      refusals,
      noise,
      looks,
      registers: await this.resource.logs(),
      remains,
      stuck,
      stalls,
    }
  }

  async close(): Promise<void> {
    await this.onlooker.stop()
    await Promise.all(this.clients.map((client) => client.kill()))
    for (const { way } of this.clients) await way?.close()
    await this.resource.stop()
    await this.store.close()
  }

  private heard(client: LiveClient, message: FromWorker): void {
    if (message.kind === 'event') this.diary.write(message.event)
    else if (message.kind === 'note') this.diary.note({ client: client.label, ...message.note }, message)
    else if (message.kind === 'error') this.errors.push({ client: client.label, ...message.error })
    else if (message.kind === 'refused') this.refusals.push({ client: client.label, ...message.refusal })
    else if (message.kind === 'stall') this.onlooker.stalled(client.label, message.from, message.to)
    else if (message.kind === 'noise') this.noise.push(`${client.label}: ${message.message}`)
    for (const look of this.watchers) look()
  }
}

/** The mutexes, and of every other kind of lock that the store has one, and one to meet at. */
function namesOf(
  { names, clients }: Stage,
  { shared, permits }: Capabilities,
): readonly [LabName, ...LabName[]] {
  const [first, ...others] = names
  // One of them is to find it full.
  const met = Math.min(PERMITS, Math.max(2, clients - 1))
  const several = (
    name: string,
    kind: LabName['kind'],
    more: Partial<LabName> = {},
    full: Partial<LabName> = {},
  ): LabName[] => [
    { name: `${first}:${name}`, kind, ...more },
    { name: `${first}:meeting:${name}`, kind, ...more, ...full, meeting: true },
  ]
  return [
    { name: first, kind: 'mutex' },
    ...others.map((name): LabName => ({ name, kind: 'mutex' })),
    ...(shared ? several('rw', 'read-write') : []),
    ...(permits ? several('permits', 'semaphore', { capacity: PERMITS }, { capacity: met }) : []),
  ]
}

/** What another library's backend shows: that somebody has it, and not who. */
function seenFrom(name: string, state: 'held' | 'free' | undefined): NameInfo | undefined {
  if (state === undefined) return undefined
  const somebody = { id: '', owner: 'somebody', weight: 1, expiresIn: 0 }
  return { name, capacity: 1, holders: state === 'held' ? [somebody] : [], waiters: [] }
}
