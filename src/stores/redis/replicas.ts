import { isNoScript, isRefusal } from './failure.ts'
import type { Driver } from './client/driver.ts'
import { isCount, wholeOf } from './replies.ts'
import type { Script } from './scripts.gen.ts'

/** How many replicas have to know of a grant before it is believed, and how long that may take. */
export interface ReplicaWish {
  readonly count: number
  readonly ms: number
}

export interface Confirmed {
  readonly reply: unknown
  /** Why the reply must not be believed. */
  readonly unconfirmed?: Error
}

/**
 * Runs a script and waits until enough replicas have what it wrote. WAIT speaks of what its own connection wrote: after
 * a reconnect it would say yes to nothing, so an answer from across one counts as a no.
 */
export class ConfirmedScripts {
  private readonly driver: Driver
  private readonly wish: ReplicaWish
  private connection = 0
  private readonly stopListening: () => void

  constructor(driver: Driver, wish: ReplicaWish) {
    this.driver = driver
    this.wish = wish
    this.stopListening = driver.onConnectionChange(() => this.connection++)
  }

  close(): void {
    this.stopListening()
  }

  /** `args`: number of keys, keys, arguments. */
  run({ sha1, lua }: Script, args: readonly string[]): Promise<Confirmed> {
    return this.runAs('evalsha', [sha1, ...args]).catch((error: unknown) => {
      if (!isNoScript(error)) throw error
      return this.runAs('eval', [lua, ...args])
    })
  }

  private async runAs(command: 'evalsha' | 'eval', args: string[]): Promise<Confirmed> {
    const { connection } = this
    const { count, ms } = this.wish
    const [script, wait] = this.driver.thenWait(command, args, this.wish)
    const [ran, waited] = await Promise.allSettled([script, wait])
    if (ran.status === 'rejected') throw ran.reason
    // Not allowed to wait is another thing than nobody to wait for.
    if (waited.status === 'rejected' && isRefusal(waited.reason)) throw waited.reason
    const counted = waited.status === 'fulfilled' && connection === this.connection
    const confirmed = counted && isCount(waited.value) ? wholeOf(waited.value) : 0
    if (confirmed >= count) return { reply: ran.value }
    return {
      reply: ran.value,
      unconfirmed: new Error(`${confirmed} of ${count} replicas confirmed within ${ms} ms`),
    }
  }
}
