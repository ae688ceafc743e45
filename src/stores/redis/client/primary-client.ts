import { EventEmitter } from 'node:events'

import { backOff } from '../../../core/back-off.ts'
import { plainError } from '../failure.ts'
import { abandon, connectWithin } from './node-redis-attempt.ts'
import type { LeadingClient, PlainClient } from './node-redis.ts'
import { placeOf, Sentinels } from './sentinels.ts'
import type { Host } from '../url.ts'

const { setTimeout, clearTimeout } = globalThis

/** A server has so long to take a connection and to answer on it: at first little, for it may stand still. */
const REACH_MS = { sentinels: { first: 500, longest: 5_000 }, server: { first: 500, longest: 2_000 } }
/** Sentinels may name another one at any time; one server is there again or it is not. */
const RETRY_MS = { sentinels: { first: 20, longest: 250 }, server: { first: 20, longest: 1_000 } }
/** All sentinels are listened to in about the same moment: one look is enough. */
const LOOK_MS = 50

interface Found {
  readonly at: Host
  readonly client: PlainClient
}

/**
 * A client of node-redis that leads to one server, or to the primary of a Sentinel group, and to the next one as soon as a
 * sentinel speaks of it.
 *
 * Each connection is a client of its own. One of the driver's that is told to end while it connects, and to connect again,
 * goes on with both, and takes what comes on either for the answer to whatever it asked first: somebody else's grant, too.
 * For a group the driver has a client as well (`createSentinel`), which does not hear `+switch-master`: it stays at the old
 * primary until that has been made a replica, seconds later, and after a failure it waits for a second.
 */
export class PrimaryClient extends EventEmitter implements LeadingClient {
  readonly asksSentinels: boolean
  isOpen = false
  private readonly sentinels: Sentinels | null
  private readonly server: Host | null
  private readonly clientAt: (at: Host) => PlainClient
  private current: Found | null = null
  /** Counts searches: what an earlier one finds is not wanted any more. */
  private search = 0
  private listening = false
  private looking: NodeJS.Timeout | undefined

  /** `clientAt`: a client that is not connected yet, and does not connect again by itself. */
  constructor(of: Sentinels | Host, clientAt: (at: Host) => PlainClient) {
    super()
    this.sentinels = of instanceof Sentinels ? of : null
    this.server = of instanceof Sentinels ? null : of
    this.asksSentinels = this.sentinels !== null
    this.clientAt = clientAt
  }

  get isReady(): boolean {
    return this.current?.client.isReady ?? false
  }

  get options(): { readonly socket?: object } {
    return this.current?.client.options ?? {}
  }

  connect(): Promise<void> {
    this.isOpen = true
    return this.find()
  }

  destroy(): void {
    this.isOpen = false
    this.search++
    clearTimeout(this.looking)
    this.sentinels?.close()
    this.drop()
    this.emit('end')
  }

  /** Ends the connection and makes a new one, to the primary of now. Not while it does so anyway. */
  reconnect(): void {
    if (this.current !== null) this.follow()
  }

  sendCommand(args: string[]): Promise<unknown> {
    return this.current === null ? Promise.reject(none()) : this.current.client.sendCommand(args)
  }

  /** Of the connection to the present primary: it does not follow. */
  duplicate(options: object): PlainClient {
    if (this.current === null) throw none()
    return this.current.client.duplicate(options)
  }

  private drop(): void {
    const { current } = this
    this.current = null
    if (current !== null) abandon(current.client)
  }

  /** `to`: where a sentinel says that the primary is now. */
  private follow(to?: Host): void {
    this.drop()
    this.emit('reconnecting')
    this.find(to).catch(() => {})
  }

  private async find(to?: Host): Promise<void> {
    const search = ++this.search
    const wanted = (): boolean => this.isOpen && search === this.search
    const of = this.asksSentinels ? 'sentinels' : 'server'
    let told = to === undefined ? undefined : [to]
    for (let attempt = 0; wanted(); attempt++) {
      try {
        const found = await this.firstOf(
          told ?? (await this.places()),
          backOff(attempt, REACH_MS[of]),
          wanted,
        )
        if (found !== undefined) this.adopt(found)
        return
      } catch (error) {
        if (wanted()) this.emit('error', error)
      }
      if (told === undefined)
        await new Promise((resolve) => {
          setTimeout(resolve, backOff(attempt, RETRY_MS[of]))
        })
      told = undefined
    }
  }

  private places(): Promise<readonly Host[]> {
    if (this.server !== null) return Promise.resolve([this.server])
    return this.sentinels?.primaries() ?? Promise.resolve([])
  }

  /** Nothing if it is not wanted any more. Rejects if none of the servers is a primary. */
  private async firstOf(
    places: readonly Host[],
    ms: number,
    wanted: () => boolean,
  ): Promise<Found | undefined> {
    let trouble: Error | undefined
    for (const at of places) {
      if (!wanted()) return undefined
      const client = this.clientAt(at)
      try {
        await connectWithin(client, ms, () => this.check(client, at))
        if (wanted()) return { at, client }
        abandon(client)
      } catch (error) {
        trouble = plainError(error)
      }
    }
    if (trouble === undefined) return undefined
    throw trouble
  }

  /** What one server is, is asked beside the first command; see role.ts. */
  private check(client: PlainClient, at: Host): Promise<void> {
    return this.asksSentinels ? checkRole(client, at) : Promise.resolve()
  }

  private adopt(found: Found): void {
    this.current = found
    const lost = (): void => {
      if (this.current === found) this.follow()
    }
    found.client.on('error', lost)
    found.client.on('end', lost)
    if (!found.client.isReady) return lost()
    this.emit('ready')
    if (this.listening || this.sentinels === null) return
    this.listening = true
    this.sentinels.listen({ moved: (to) => this.moved(to), listening: () => this.lookSoon() })
  }

  /** Said by every sentinel; the first one counts. */
  private moved(to: Host): void {
    const known = this.current !== null && placeOf(this.current.at) === placeOf(to)
    if (this.isOpen && !known) this.follow(to)
  }

  private lookSoon(): void {
    clearTimeout(this.looking)
    this.looking = setTimeout(() => {
      const { current } = this
      this.places()
        .then(([at]) => at !== undefined && current !== null && this.current === current && this.moved(at))
        .catch(() => {})
    }, LOOK_MS)
    this.looking.unref()
  }
}

function none(): Error {
  return new Error('there is no connection to the primary')
}

async function checkRole(client: PlainClient, at: Host): Promise<void> {
  const info = await client.sendCommand(['INFO', 'replication']).catch((error: unknown) => {
    // Not allowed to ask: then what the server says to a write has to do.
    if (error instanceof Error && error.message.startsWith('NOPERM')) return 'role:master'
    throw error
  })
  if (!/^role:master/m.test(String(info)))
    throw new Error(`the server at ${placeOf(at)} is not the primary that the sentinels take it for`)
}
