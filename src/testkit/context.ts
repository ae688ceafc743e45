import type { Capabilities, MaybePromise, Store } from '../core/contract.ts'
import type { Env } from '../runtime/env.ts'
import { systemEnv } from '../runtime/env.ts'
import type { CaseContext, Target } from './case.ts'
import { checkedStore } from './checked-store.ts'
import type { StoreFaultError } from './checked-store.ts'
import { FaultProxy } from './fault-proxy.ts'
import type { StoreModule } from './taker-protocol.ts'

const DEFAULT_GRACE_MS = 1000
const POLL_MS = 5

/** The surroundings of one case. Opens what the case asks for, and closes all of it afterwards. */
export class TargetContext implements CaseContext {
  readonly capabilities: Capabilities
  readonly env: Env
  readonly grace: number
  /** What the store answered against the contract, if it did. */
  readonly faults: StoreFaultError[] = []
  private readonly target: Target
  private readonly undo: (() => MaybePromise<unknown>)[] = []
  private readonly run: string
  private names = 0

  constructor(target: Target, capabilities: Capabilities) {
    this.target = target
    this.capabilities = capabilities
    this.env = target.env ?? systemEnv
    this.grace = target.grace ?? DEFAULT_GRACE_MS
    this.run = this.env.randomId().slice(0, 12)
  }

  async createStore(): Promise<Store> {
    return this.opened(await this.target.createStore())
  }

  async createProxied(): Promise<{ store: Store; proxy: FaultProxy }> {
    const { proxied } = this.target
    if (proxied === undefined) throw new Error('the target has no proxy')
    const proxy = await FaultProxy.open(await proxied.upstream())
    this.cleanup(() => proxy.close())
    return { store: this.opened(await proxied.createStore(proxy)), proxy }
  }

  async restart(): Promise<void> {
    if (this.target.restart === undefined) throw new Error('the target cannot restart')
    await this.target.restart()
  }

  async module(): Promise<StoreModule> {
    if (this.target.module === undefined) throw new Error('the target has no module for other processes')
    return this.target.module()
  }

  async leftovers(): Promise<readonly string[]> {
    return (await this.target.leftovers?.()) ?? []
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.env.setTimer(resolve, ms, false))
  }

  name(label = 'name'): string {
    this.names += 1
    return `${this.run}-${this.names}-${label}`
  }

  ttl(ms: number): number {
    return Math.max(ms, this.capabilities.minTtl)
  }

  async eventually<T>(
    what: string,
    check: () => MaybePromise<T | undefined | false>,
    within: number = this.grace,
  ): Promise<T> {
    const began = this.env.mono()
    for (;;) {
      const seen = await check()
      if (seen !== undefined && seen !== false) return seen
      if (this.env.mono() - began > within) throw new Error(`not within ${within} ms: ${what}`)
      await this.sleep(POLL_MS)
    }
  }

  cleanup(undo: () => MaybePromise<unknown>): void {
    this.undo.push(undo)
  }

  private opened(store: Store): Store {
    this.cleanup(() => store.close())
    return checkedStore(store, { onFault: (fault) => this.faults.push(fault) })
  }

  /** Undoes everything, the last first, also when one of them fails. */
  async close(): Promise<void> {
    const failures: unknown[] = []
    for (let undo = this.undo.pop(); undo !== undefined; undo = this.undo.pop()) {
      try {
        await undo()
      } catch (failure) {
        failures.push(failure)
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, 'could not clean up')
  }
}
