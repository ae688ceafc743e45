import type { Capabilities, NameInfo, Store } from '../../core/contract.ts'
import { openStore } from '../../open.ts'
import { Random } from '../../testkit/random.ts'
import { Resource } from '../resource/process.ts'
import { LiveClient } from './client.ts'
import { Diary } from './diary.ts'
import type { ClockHandle, ServerHandle } from './servers.ts'
import { Way } from './way.ts'
import type { FromWorker, Place } from './worker-protocol.ts'

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
  readonly token?: string
  readonly ttl: number
  readonly clients: number
  readonly names: readonly [string, ...string[]]
  /** Milliseconds by which the store may keep a grant for longer than its ttl. */
  readonly lateExpiry?: number
  /** Given by whoever started the server, and may hurt it. */
  readonly server?: ServerHandle
  readonly clock?: ClockHandle
  readonly admin?: Admin
  /** Another Node for the clients. */
  readonly execPath?: string
}

const START_MS = 20_000
const ANSWER_MS = 5000

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
  private readonly watchers = new Set<() => void>()

  private constructor(stage: Stage, seed: number, store: Store, resource: Resource) {
    this.stage = stage
    this.random = new Random(seed)
    this.store = store
    this.resource = resource
  }

  static async open(stage: Stage, seed: number): Promise<Scene> {
    const store = await openStore(stage.url, stage.token === undefined ? {} : { token: stage.token })
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
    return this.store.capabilities
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
    const { url, token, ttl, names, execPath = process.execPath } = this.stage
    const way = await Way.open(url)
    const order = {
      do: 'begin' as const,
      label: `client ${this.clients.length + 1}`,
      url: way?.url ?? url,
      ...(token === undefined ? {} : { token }),
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
    }
    const client = new LiveClient(order, way, events, execPath)
    this.clients.push(client)
    const begun = await this.until(() => client.state !== 'starting' || failure !== undefined, START_MS)
    if (!begun || client.state !== 'working')
      throw new Error(`${client.label} did not start: ${failure ?? 'no sign'}`)
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

  /** A client that has the lock and stands still at this place until it is told to go on. */
  async lingerer(where: Place): Promise<LiveClient> {
    const client = this.anyone()
    client.send({ do: 'linger', where })
    const there = await this.until(() => client.lingering, this.expiry + START_MS / 2)
    if (there) return client
    this.goOn(client)
    throw new Missed(`${client.label} was to be hurt while it holds the lock, and was not given it`)
  }

  /** One of those that are at work. */
  anyone(): LiveClient {
    const { working } = this
    const client = working[this.random.below(working.length)]
    if (client === undefined) throw new Missed('no client is left to be hurt')
    return client
  }

  goOn(client: LiveClient): void {
    client.lingering = false
    client.send({ do: 'go' })
  }

  /** Whether others than this one are given the lock that it has, so many times. */
  granted(except: LiveClient, times: number, timeout: number): Promise<boolean> {
    const others = this.clients.filter((client) => client !== except)
    const count = (): number => others.reduce((sum, { grants }) => sum + grants, 0)
    const before = count()
    return this.until(() => count() >= before + times, timeout)
  }

  /** Everything in its place again: whatever a fault left behind. */
  async heal(): Promise<void> {
    await this.stage.server?.resume().catch(() => undefined)
    for (const client of this.clients) {
      client.way?.heal()
      await client.way?.accept()
      client.resume()
      if (client.lingering) this.goOn(client)
    }
  }

  async inspect(name: string): Promise<NameInfo | undefined> {
    const info = await this.store.inspect(name, ANSWER_MS)
    return 'kind' in info ? undefined : info
  }

  /** Lets the clients end in order; those that do not are killed. */
  async finish(): Promise<void> {
    for (const client of this.working) client.send({ do: 'finish' })
    await this.until(() => this.working.length === 0, this.expiry + ANSWER_MS)
    await Promise.all(this.clients.map((client) => client.kill()))
    for (const { way } of this.clients) await way?.close()
  }

  /** Takes away what is left in the lab's own names: those who could give it back are gone. */
  async tidy(): Promise<void> {
    for (const name of this.stage.names) {
      const info = await this.inspect(name)
      for (const { id } of [...(info?.holders ?? []), ...(info?.waiters ?? [])]) {
        await this.store.withdraw({ name, id }, ANSWER_MS)
      }
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.kill()))
    for (const { way } of this.clients) await way?.close()
    await this.resource.stop()
    await this.store.close()
  }

  private heard(client: LiveClient, message: FromWorker): void {
    if (message.kind === 'event') this.diary.history.push(message.event)
    else if (message.kind === 'note') this.diary.note({ client: client.label, ...message.note }, message)
    else if (message.kind === 'noise') this.noise.push(`${client.label}: ${message.message}`)
    for (const look of this.watchers) look()
  }
}
