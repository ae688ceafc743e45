import { listen } from './driver.ts'
import type { Node, SubscriberConnection, SubscriberEvents } from './driver.ts'
import { NodeRedisDriver } from './node-redis.ts'
import type { NodeRedisBase, Subscribing } from './node-redis.ts'
import type { ReplicaWish } from '../replicas.ts'

// Taken once: a user's fake timers must not reach locks.
const { setInterval, clearInterval } = globalThis

/** As `createSentinel` makes it. */
export interface NodeRedisSentinel extends NodeRedisBase {
  readonly isReady: boolean
  getMasterNode(): unknown
  sendCommand(isReadonly: boolean, args: string[]): Promise<unknown>
}

interface Pipeline {
  addCommand(isReadonly: boolean, args: string[]): Pipeline
  execAsPipeline(): Promise<readonly unknown[]>
}

interface Pipelining {
  multi(): Pipeline
}

const LOOK_AGAIN_MS = 20

/** A client of the user's. The store itself connects in another way; see primary-client.ts. */
export class NodeRedisSentinelDriver extends NodeRedisDriver<NodeRedisSentinel & Subscribing & Pipelining> {
  readonly cluster = false
  readonly sentinels = true

  constructor(client: NodeRedisSentinel & Subscribing & Pipelining) {
    super(client, false)
  }

  ready(): boolean {
    return this.client.isReady
  }

  /** It does not say when it has connected. */
  override onReady(listener: () => void): () => void {
    const timer = setInterval(listener, LOOK_AGAIN_MS)
    return () => clearInterval(timer)
  }

  protected send(_key: string, command: string[]): Promise<unknown> {
    return this.client.sendCommand(false, command)
  }

  /**
   * It may have several connections to the primary (`masterPoolSize`), and gives two commands of one moment one each: WAIT would
   * speak of a connection that wrote nothing. So both are one request.
   */
  override thenWait(
    command: 'evalsha' | 'eval',
    args: string[],
    { count, ms }: ReplicaWish,
  ): [Promise<unknown>, Promise<unknown>] {
    const replies = this.client
      .multi()
      .addCommand(false, this.scriptWords(command, args))
      .addCommand(false, ['WAIT', String(count), String(ms)])
      .execAsPipeline()
    return [replies.then(([script]) => script), replies.then(([, wait]) => wait)]
  }

  nodeOf(): string {
    return ''
  }

  /** It is the user's, and follows the sentinels to a new primary by itself. */
  reset(): void {}

  primaries(): Promise<readonly Node[]> {
    return Promise.resolve([{ send: (args) => this.send('', this.words(args)) }])
  }

  /**
   * It has a connection for subscriptions of its own and moves that to a new primary, but does not say when. So
   * whatever it reports is taken for the end of the connection: subscribing again costs little.
   */
  subscriber({ message, end }: SubscriberEvents): Promise<SubscriberConnection> {
    const { client } = this
    const heard = (text: string, channel: string): void => message(channel, text)
    const channels = new Set<string>()
    const stop = (): void => {
      stopListening()
      for (const channel of channels) client.unsubscribe(channel, heard).catch(() => {})
    }
    const over = (): void => {
      stop()
      end()
    }
    const stopListening = listen(client, ['topology-change', 'error'], over)
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
}
