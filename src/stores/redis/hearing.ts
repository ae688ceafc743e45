import type { Driver, Node } from './client/driver.ts'

const { setTimeout, clearTimeout, setImmediate } = globalThis

/** How long a word may be on its way after the server took it: through a whole Cluster, and to a busy process. */
const WORD_MS = 1_000

/** A Cluster passes a word on from any of its servers, and some of them may be down. */
const MOST_SPEAKERS = 3

/**
 * Whether a subscriber hears what the scripts say. The two connections can lead to different servers: an address moved and
 * only one of them followed, or a failover left one of them behind. Then nobody is told anything any more, and whoever waits
 * is passed over. So a word is said over the connection for commands, and listened for.
 *
 * That alone would not do: a server passes what is published on to its replicas, and a subscriber that was left behind at one
 * hears the word, but does not count. So the server is asked for its count as well.
 */
export class Hearing {
  private readonly driver: Driver
  private said = 0
  private readonly awaited = new Map<string, () => void>()

  constructor(driver: Driver) {
    this.driver = driver
  }

  /** A message came. Whether it was a word of ours. */
  heard(message: string): boolean {
    const arrived = this.awaited.get(message)
    arrived?.()
    return arrived !== undefined
  }

  /** Rejects if the server does not take a word: then nothing is known. */
  async hears(channels: readonly string[]): Promise<boolean> {
    const primaries = await this.driver.primaries()
    if (primaries.length === 0) throw new Error('there is no server to say a word to')
    const [channel = ''] = channels
    const word = `w ${++this.said}`
    let timer: NodeJS.Timeout | undefined
    let tell = (_heard: boolean): void => {}
    const arrived = new Promise<boolean>((resolve) => (tell = resolve))
    this.awaited.set(word, () => tell(true))
    try {
      const said = someOf(primaries).map((node) => node.send(['publish', channel, word]))
      const [counted] = await Promise.all([this.counts(channels), anyOf(said)])
      // A process that stood still meanwhile first reads what has come: to give the connection up would keep it busy for longer.
      timer = setTimeout(() => setImmediate(() => tell(false)), WORD_MS)
      timer.unref()
      return counted && (await arrived)
    } finally {
      clearTimeout(timer)
      this.awaited.delete(word)
    }
  }

  /** Whether the scripts would find a listener of each. In a Cluster a node knows only its own, and the scripts do not ask. */
  private async counts(channels: readonly string[]): Promise<boolean> {
    const [node] = this.driver.cluster ? [] : await this.driver.primaries()
    if (node === undefined) return true
    try {
      const reply = await node.send(['pubsub', 'numsub', ...channels])
      return !Array.isArray(reply) || reply.every((count, at) => at % 2 === 0 || Number(count) > 0)
    } catch {
      // Not allowed: then the scripts may not ask either, and pass nobody over.
      return true
    }
  }
}

/** A few, at random. */
function someOf(primaries: readonly Node[]): readonly Node[] {
  const rest = [...primaries]
  const some: Node[] = []
  while (some.length < MOST_SPEAKERS && rest.length > 0)
    some.push(...rest.splice(Math.floor(Math.random() * rest.length), 1))
  return some
}

/** As soon as one is done. If none is, what the first of them says. */
function anyOf(said: readonly Promise<unknown>[]): Promise<unknown> {
  return Promise.any(said).catch((error: unknown) => {
    throw error instanceof AggregateError ? error.errors[0] : error
  })
}
