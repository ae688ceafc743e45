import { abandon, connectWithin } from './node-redis-attempt.ts'
import type { Attempted } from './node-redis-attempt.ts'
import type { PlainClient } from './node-redis.ts'
import type { Host } from '../url.ts'

const { setTimeout, clearTimeout } = globalThis

/** A sentinel that says nothing for so long has no say. (ioredis asks one after the other, and would wait for ever.) */
export const SENTINEL_MS = 2_000
/** While sentinels disagree, so long after the first answer the others may come too. */
const OTHERS_MS = 200
/** When a sentinel that went is looked for again. */
const AGAIN_MS = 1_000
/** So often in a row, for an hour, if only another one has named it: one that is started anew may have another address each time. */
const MOST_TRIES = 3_600

/** A client for one sentinel, of whichever driver. */
export type SentinelClient = Attempted & Pick<PlainClient, 'isReady' | 'sendCommand' | 'subscribe' | 'unref'>

export interface SentinelEvents {
  /** A sentinel says that the primary is at another place now. */
  readonly moved: (to: Host) => void
  /** A sentinel is listened to from now on: it may have said so before. */
  readonly listening: () => void
}

/** The sentinels of a group. All of them are asked, and all of them are listened to: each learns of a failover in its own time. */
export class Sentinels {
  private readonly name: string
  /** Those that are never forgotten. */
  private readonly named: ReadonlySet<string>
  private readonly clientAt: (at: Host) => SentinelClient
  private readonly known = new Map<string, Host>()
  private readonly listeners = new Map<string, SentinelClient>()
  private events: SentinelEvents | null = null

  /** `name`: what they call the primary. `clientAt`: a client that is not connected yet, and does not connect again by itself. */
  constructor(hosts: readonly Host[], name: string, clientAt: (at: Host) => SentinelClient) {
    for (const host of hosts) this.known.set(placeOf(host), host)
    this.named = new Set(this.known.keys())
    this.name = name
    this.clientAt = clientAt
  }

  /** Where the primary is. If they disagree, what most of them say comes first. Rejects if none of them can tell. */
  primaries(): Promise<readonly Host[]> {
    return new Promise((resolve, reject) => {
      const answers = new Map<string, { readonly at: Host; votes: number }>()
      const hosts = [...this.known.values()]
      let trouble = new Error(`no sentinel has answered within ${SENTINEL_MS} ms`)
      let open = hosts.length
      const finish = (): void => {
        clearTimeout(timer)
        if (answers.size === 0) return reject(trouble)
        resolve([...answers.values()].sort((a, b) => b.votes - a.votes).map(({ at }) => at))
      }
      let timer = setTimeout(finish, SENTINEL_MS)
      const told = (at: Host): void => {
        if (answers.size === 0) {
          clearTimeout(timer)
          timer = setTimeout(finish, OTHERS_MS)
        }
        const answer = answers.get(placeOf(at)) ?? { at, votes: 0 }
        answers.set(placeOf(at), answer)
        if (++answer.votes > hosts.length / 2) finish()
      }
      for (const host of hosts) {
        this.ask(host)
          .then(told, (error: unknown) => (trouble = error instanceof Error ? error : trouble))
          .finally(() => --open === 0 && finish())
          .catch(() => {})
      }
    })
  }

  private async ask(sentinel: Host): Promise<Host> {
    const client = this.clientAt(sentinel)
    const [primary, others] = await connectWithin(client, SENTINEL_MS, () =>
      Promise.all([
        client.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.name]),
        client.sendCommand(['SENTINEL', 'SENTINELS', this.name]).catch(() => []),
      ]),
    )
    abandon(client)
    this.learn(others)
    const at = Array.isArray(primary) ? hostOf(primary[0], primary[1]) : undefined
    if (at === undefined) throw new Error(`the sentinels know no primary that is called ${this.name}`)
    return at
  }

  /** The URL need not name them all. */
  private learn(reply: unknown): void {
    for (const sentinel of Array.isArray(reply) ? reply : []) {
      const fields = fieldsOf(sentinel)
      const at = hostOf(fields.get('ip'), fields.get('port'))
      if (at !== undefined && !/down|disconnected/.test(fields.get('flags') ?? ''))
        this.known.set(placeOf(at), at)
    }
    if (this.events !== null) this.listen(this.events)
  }

  listen(events: SentinelEvents): void {
    this.events = events
    for (const [place, host] of this.known) if (!this.listeners.has(place)) this.listenTo(place, host, events)
  }

  private listenTo(place: string, host: Host, { moved, listening }: SentinelEvents, tried = 0): void {
    const client = this.clientAt(host)
    let tries = tried + 1
    this.listeners.set(place, client)
    const heard = (message: string): void => {
      const [name, , , ip, port] = message.split(' ')
      const to = name === this.name ? hostOf(ip, port) : undefined
      if (to !== undefined) moved(to)
    }
    const gone = (): void => {
      if (this.listeners.get(place) !== client) return
      abandon(client)
      if (tries >= MOST_TRIES && !this.named.has(place)) {
        // Should it come back, the others say so.
        this.known.delete(place)
        this.listeners.delete(place)
        return
      }
      const timer = setTimeout(() => {
        // Closed meanwhile, or somebody was faster.
        if (this.events === null || this.listeners.get(place) !== client) return
        this.listenTo(place, host, this.events, tries)
      }, AGAIN_MS)
      timer.unref()
    }
    // To be told something is no reason to keep the process alive.
    client.unref?.()
    connectWithin(client, SENTINEL_MS, () => client.subscribe('+switch-master', heard)).then(() => {
      tries = 0
      client.on('error', gone)
      client.on('end', gone)
      if (client.isReady) listening()
      else gone()
    }, gone)
  }

  close(): void {
    this.events = null
    for (const client of this.listeners.values()) abandon(client)
    this.listeners.clear()
  }
}

export function placeOf({ host, port }: Host): string {
  return `${host}:${port}`
}

function hostOf(host: unknown, port: unknown): Host | undefined {
  const at = { host: typeof host === 'string' ? host : '', port: Number(port) }
  return at.host !== '' && Number.isInteger(at.port) && at.port > 0 ? at : undefined
}

/** Names and values in turn, or an object of them: that depends on the protocol. */
function fieldsOf(reply: unknown): Map<string, string> {
  const flat = Array.isArray(reply) ? reply : Object.entries(reply ?? {}).flat()
  const fields = new Map<string, string>()
  for (let i = 0; i + 1 < flat.length; i += 2) fields.set(String(flat[i]), String(flat[i + 1]))
  return fields
}
