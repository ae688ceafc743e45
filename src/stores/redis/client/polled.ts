import type { Driver, Node, SubscriberConnection } from './driver.ts'

/** What clients of one server have in common that tell nothing by themselves: no message of a channel, no word of their connection. */
export abstract class PolledDriver implements Driver {
  readonly cluster = false
  readonly polled = true
  abstract readonly connectionless: boolean
  readonly keyPrefix = ''

  /** One command. Its errors are those of the server, in its own words. */
  protected abstract run(words: readonly string[]): Promise<unknown>
  abstract evalsha(args: string[]): Promise<unknown>
  abstract eval(args: string[]): Promise<unknown>
  abstract ended(): boolean

  ready(): boolean {
    return !this.ended()
  }

  onReady(): () => void {
    return () => {}
  }

  onConnectionChange(): () => void {
    return () => {}
  }

  notReadyBecause(): Error | undefined {
    return undefined
  }

  hdel(key: string, field: string): Promise<unknown> {
    return this.run(['hdel', key, field])
  }

  nodeOf(): string {
    return ''
  }

  reset(): void {}

  primaries(): Promise<readonly Node[]> {
    return Promise.resolve([{ send: (args) => this.run(args) }])
  }

  thenWait(): [Promise<unknown>, Promise<unknown>] {
    throw new Error('replicas cannot be waited for through this client')
  }

  subscriber(): Promise<SubscriberConnection> {
    return Promise.reject(new Error('nothing can be heard through this client'))
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
