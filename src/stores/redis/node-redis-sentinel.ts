import type { Node, SubscriberConnection, SubscriberEvents } from './link.ts'
import { NodeRedisLink } from './node-redis.ts'
import type { NodeRedisBase, Subscribing } from './node-redis.ts'

/** As `createSentinel` makes it. */
export interface NodeRedisSentinel extends NodeRedisBase {
  readonly isReady: boolean
  getMasterNode(): unknown
  sendCommand(isReadonly: boolean, args: string[]): Promise<unknown>
}

const LOOK_AGAIN_MS = 20
/** How long closing waits for commands that are under way. */
const LAST_ANSWERS_MS = 2_000

/**
 * This client must not be destroyed while a command of its own is under way: it would try that command again and again,
 * without a pause, and the process would stand still. So what is under way is counted.
 */
export class NodeRedisSentinelLink extends NodeRedisLink<NodeRedisSentinel & Subscribing> {
  readonly cluster = false
  private underWay = 0

  ready(): boolean {
    return this.client.isReady
  }

  /** It does not say when it has connected. */
  override onReady(listener: () => void): () => void {
    const timer = setInterval(listener, LOOK_AGAIN_MS)
    return () => clearInterval(timer)
  }

  protected async send(_key: string, command: string[]): Promise<unknown> {
    this.underWay++
    try {
      return await this.client.sendCommand(false, command)
    } finally {
      this.underWay--
    }
  }

  nodeOf(): string {
    return ''
  }

  /** Not possible, for the reason above. It follows the sentinels to a new primary by itself. */
  reset(): void {}

  primaries(): Promise<readonly Node[]> {
    return Promise.resolve([{ send: (args) => this.send('', [...args]) }])
  }

  /**
   * It has a connection for subscriptions of its own and moves that to a new primary, but does not say when. So
   * whatever it reports is taken for the end of the connection: subscribing again costs little.
   */
  subscriber({ message, end }: SubscriberEvents): Promise<SubscriberConnection> {
    const { client } = this
    const heard = (text: string, channel: string): void => message(channel, text)
    const channels = new Set<string>()
    const events = ['topology-change', 'error']
    const stop = (): void => {
      for (const event of events) client.off(event, over)
      for (const channel of channels) client.unsubscribe(channel, heard).catch(() => {})
    }
    const over = (): void => {
      stop()
      end()
    }
    for (const event of events) client.on(event, over)
    return Promise.resolve({
      async subscribe(more) {
        for (const channel of more) channels.add(channel)
        await client.subscribe(more, heard)
      },
      async unsubscribe(channel) {
        channels.delete(channel)
        await client.unsubscribe(channel, heard)
      },
      close: stop,
    })
  }

  override async close(): Promise<void> {
    if (!this.owned) return
    const until = performance.now() + LAST_ANSWERS_MS
    while (this.underWay > 0 && performance.now() < until) {
      await new Promise((resolve) => void setTimeout(resolve, LOOK_AGAIN_MS))
    }
    if (this.underWay === 0) await super.close()
  }
}
