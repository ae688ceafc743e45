import type { Direction, LinkFaults } from '../../testkit/fault-proxy.ts'
import { FaultProxy } from '../../testkit/fault-proxy.ts'
import { by, endpointsOf } from './url.ts'

/** One client's way to the store, through a proxy for each server that its address names. */
export class Way {
  /** The store's address by this way. */
  readonly url: string
  private readonly proxies: readonly FaultProxy[]
  private cuts = 0

  private constructor(url: string, proxies: readonly FaultProxy[]) {
    this.url = by(url, proxies)
    this.proxies = proxies
  }

  /** Undefined where connections cannot be led through a proxy. */
  static async open(url: string): Promise<Way | undefined> {
    const endpoints = endpointsOf(url)
    if (endpoints === undefined) return undefined
    return new Way(url, await Promise.all(endpoints.map((endpoint) => FaultProxy.open(endpoint))))
  }

  set(direction: Direction, faults: LinkFaults): void {
    for (const proxy of this.proxies) proxy.set(direction, faults)
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.proxies.reduce((sum, { connections }) => sum + connections, 0)
  }

  /** Connections that were ever made. */
  get accepted(): number {
    return this.proxies.reduce((sum, { accepted }) => sum + accepted, 0)
  }

  /** Connections that have ended, whoever ended them. */
  get ended(): number {
    return this.proxies.reduce((sum, { ended }) => sum + ended, 0)
  }

  heal(): void {
    for (const proxy of this.proxies) proxy.heal()
  }

  reset(): void {
    for (const proxy of this.proxies) proxy.reset()
  }

  /** Lets a request through to one of the servers, and drops its reply and the connection. Another one each time. */
  async cutReply(): Promise<void> {
    const proxy = this.proxies[this.cuts % this.proxies.length]
    this.cuts += 1
    await proxy?.cutReply()
  }

  async refuse(): Promise<void> {
    for (const proxy of this.proxies) await proxy.refuse()
  }

  async accept(): Promise<void> {
    for (const proxy of this.proxies) await proxy.accept()
  }

  async close(): Promise<void> {
    for (const proxy of this.proxies) await proxy.close()
  }
}
