import { once } from 'node:events'

import type { Redis } from 'ioredis'

import type { StoreEvent } from '../../../src/core/contract.ts'

interface Heard {
  readonly session: string
  readonly event: StoreEvent
}

export interface EarOptions {
  /** Listens. */
  readonly listener: Redis
  /** Carries out the scripts that tell. */
  readonly commands: Redis
  /** What the channel of a session begins with. */
  readonly prefix: string
  readonly read: (message: string) => StoreEvent | undefined
}

/** Hears what sessions are told, and knows when nothing is on its way any more. */
export class Ear {
  readonly listening = new Set<string>()
  private readonly options: EarOptions
  private heard: Heard[] = []
  private onBarrier = (): void => {}

  constructor(options: EarOptions) {
    this.options = options
  }

  async start(sessions: readonly string[]): Promise<void> {
    const { listener, prefix, read } = this.options
    // ioredis takes a SUBSCRIBE while it connects, and its own INFO is refused then: it would never be ready.
    if (listener.status !== 'ready') await once(listener, 'ready')
    listener.removeAllListeners('message')
    listener.on('message', (channel: string, message: string) => {
      const event = read(message)
      if (channel === 'barrier') this.onBarrier()
      else if (event !== undefined) this.heard.push({ session: channel.slice(prefix.length), event })
      else throw new Error(`not a message of the scripts: ${message}`)
    })
    await listener.subscribe('barrier')
    for (const session of sessions) await this.turn(session, true)
  }

  async turn(session: string, on: boolean): Promise<void> {
    const { listener, prefix } = this.options
    this.listening[on ? 'add' : 'delete'](session)
    await listener[on ? 'subscribe' : 'unsubscribe'](prefix + session)
  }

  /** Everything published so far: a message of our own comes after it. */
  async told(): Promise<readonly Heard[]> {
    const arrived = new Promise<void>((resolve) => (this.onBarrier = resolve))
    await this.options.commands.publish('barrier', '')
    await arrived
    const { heard } = this
    this.heard = []
    return heard
  }
}
