import type { MaybePromise, Store, StoreEvent, StoreListener, Unknown } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/index.ts'
import type { HoldfastOptions } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import type { Env, Timer } from '../../../src/runtime/env.ts'

export type Method = 'claim' | 'renew' | 'release' | 'withdraw' | 'downgrade' | 'watch' | 'inspect' | 'list'

/** `request`: the store never sees it. `reply`: it does, and nobody hears. `late`: it comes when nobody waits for it any more. */
export type Loss = 'request' | 'reply' | 'late'

/** A process's own view of the world. While it is paused, time passes and nothing reaches it. */
export class ProcessEnv implements Env {
  private readonly env: VirtualEnv
  private paused = false
  private missed: (() => void)[] = []

  constructor(env: VirtualEnv) {
    this.env = env
  }

  mono = (): number => this.env.mono()
  boot = (): number => this.env.boot()
  wall = (): number => this.env.wall()
  random = (): number => this.env.random()
  randomId = (): string => this.env.randomId()

  setTimer(callback: () => void, ms: number, background: boolean): Timer {
    let cancelled = false
    const timer = this.env.setTimer(() => this.reach(() => cancelled || callback()), ms, background)
    return {
      cancel: () => {
        cancelled = true
        timer.cancel()
      },
    }
  }

  defer(callback: () => void): void {
    this.env.defer(() => this.reach(callback))
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.setTimer(resolve, ms, false))
  }

  pause(ms: number): void {
    if (this.paused) return
    this.paused = true
    this.env.setTimer(() => this.resume(), ms, false)
  }

  private resume(): void {
    this.paused = false
    const missed = this.missed
    this.missed = []
    for (const callback of missed) callback()
  }

  private reach(callback: () => void): void {
    if (this.paused) this.missed.push(callback)
    else callback()
  }
}

/** A memory store at the other end of a network that a test holds in its hands. */
export class FarStore implements Store {
  readonly kind = 'far'
  readonly capabilities: Store['capabilities']
  /** Milliseconds from here to there, and back. */
  there = 0
  back = 0
  /** Milliseconds that an event takes; Infinity: it gets lost. */
  events = 0
  /** After so many milliseconds comes what is late. */
  late = 10_000
  /** What becomes of the next requests of a kind, or of all. */
  readonly losses: { method: Method | 'any'; loss: Loss; times: number }[] = []
  /** Every request that left, in order. */
  readonly sent: { method: Method; size: number }[] = []
  private readonly env: ProcessEnv
  private readonly network: VirtualEnv
  private readonly store: Store
  private readonly listeners = new Set<StoreListener>()

  constructor(
    network: VirtualEnv,
    env: ProcessEnv,
    store: Store,
    capabilities: Partial<Store['capabilities']> = {},
  ) {
    this.network = network
    this.env = env
    this.store = store
    this.capabilities = { ...store.capabilities, ...capabilities }
  }

  lose(method: Method | 'any', loss: Loss, times = 1): void {
    this.losses.push({ method, loss, times })
  }

  /** The network works again. */
  heal(): void {
    this.losses.length = 0
  }

  count(method?: Method): number {
    return this.sent.filter((request) => method === undefined || request.method === method).length
  }

  /** The subscription broke and came back. */
  gap(): void {
    for (const listener of this.listeners) listener({ kind: 'gap' })
  }

  /** A message that the store never sent: from a replica, or from before a failover. */
  forge(event: StoreEvent): void {
    for (const listener of this.listeners) listener(event)
  }

  claim: Store['claim'] = (request, timeout) => {
    const copy = { ...request, name: request.name, weight: request.weight, capacity: request.capacity }
    const { ttl, patience, owner } = request
    return this.call('claim', 1, timeout, () => this.store.claim({ ...copy, ttl, patience, owner }, timeout))
  }

  renew: Store['renew'] = async (requests, timeout) => {
    const copies = requests.map(({ name, id, ttl, patience, tokens }) => ({
      name,
      id,
      ttl,
      patience,
      tokens,
    }))
    const answers = await this.call('renew', requests.length, timeout, () =>
      this.store.renew(copies, timeout),
    )
    return 'kind' in answers ? requests.map(() => answers) : answers
  }

  release: Store['release'] = async (claim, next, timeout) => {
    const ref = { name: claim.name, id: claim.id }
    const copy = next && {
      name: next.name,
      id: next.id,
      weight: next.weight,
      capacity: next.capacity,
      ttl: next.ttl,
      patience: next.patience,
      tokens: next.tokens,
      whenBusy: next.whenBusy,
      owner: next.owner,
    }
    const result = await this.call('release', 1, timeout, () => this.store.release(ref, copy, timeout))
    if (!('kind' in result)) return result
    return next === undefined ? { released: result } : { released: result, next: result }
  }

  withdraw: Store['withdraw'] = ({ name, id }, timeout) =>
    this.call('withdraw', 1, timeout, () => this.store.withdraw({ name, id }, timeout))

  downgrade: NonNullable<Store['downgrade']> = ({ name, id }, timeout) =>
    this.call(
      'downgrade',
      1,
      timeout,
      () => this.store.downgrade?.({ name, id }, timeout) ?? { kind: 'lost' },
    )

  watch: Store['watch'] = (session, listener, timeout) =>
    this.call('watch', 1, timeout, async () => {
      this.listeners.add(listener)
      const watch = await this.store.watch(session, (event) => this.deliver(listener, event), timeout)
      if (watch.kind === 'unknown') return watch
      return {
        kind: 'watching' as const,
        stop: () => {
          this.listeners.delete(listener)
          watch.stop()
        },
      }
    })

  inspect: Store['inspect'] = (name, timeout) =>
    this.call('inspect', 1, timeout, () => this.store.inspect(name, timeout))

  list: Store['list'] = (query, timeout) =>
    this.call('list', 1, timeout, () => this.store.list(query, timeout))

  close(): void {}

  private deliver(listener: StoreListener, event: StoreEvent): void {
    if (this.events === Infinity) return
    this.env.setTimer(() => listener(event), this.events, true)
  }

  private async call<T>(
    method: Method,
    size: number,
    timeout: number,
    run: () => MaybePromise<T>,
  ): Promise<T | Unknown> {
    this.sent.push({ method, size })
    const loss = this.nextLoss(method)
    const { there, back } = this
    if (loss === 'late') this.network.setTimer(() => void run(), this.late, true)
    if (loss === 'late' || loss === 'request' || there > timeout) return this.timeOut(timeout)
    // What is on its way arrives, also if the sender has stopped meanwhile.
    if (there > 0) await this.network.sleep(there)
    const answer = await run()
    if (loss === 'reply' || there + back > timeout) return this.timeOut(timeout - there)
    if (back > 0) await this.env.sleep(back)
    return answer
  }

  private async timeOut(ms: number): Promise<Unknown> {
    await this.env.sleep(ms)
    return { kind: 'unknown', cause: new Error('no answer') }
  }

  private nextLoss(method: Method): Loss | undefined {
    const found = this.losses.find(
      (each) => each.times > 0 && (each.method === method || each.method === 'any'),
    )
    if (found !== undefined) found.times--
    return found?.loss
  }
}

export interface Process {
  readonly holdfast: Holdfast
  readonly store: FarStore
  readonly env: ProcessEnv
}

export interface World {
  readonly env: VirtualEnv
  readonly server: Store
  /** Another process: a Holdfast with its own way to the same store. */
  readonly process: (options?: HoldfastOptions) => Process
}

export function world(capabilities?: Partial<Store['capabilities']>): World {
  const env = new VirtualEnv()
  const server = memoryStore({ now: () => env.instant() })
  return {
    env,
    server,
    process(options = {}) {
      const own = new ProcessEnv(env)
      const store = new FarStore(env, own, server, capabilities)
      return { store, env: own, holdfast: new Holdfast(store, { env: own, owner: 'test', ...options }) }
    },
  }
}

/** Nothing is held or waited for at the store. */
export async function isClean({ server }: World, name: string): Promise<boolean> {
  const info = await server.inspect(name, 1000)
  return !('kind' in info) && info.holders.length === 0 && info.waiters.length === 0
}
