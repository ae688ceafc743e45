import type { Activity, ClaimRegistry } from './claim-registry.ts'
import type { Principal } from './rights.ts'

/** Milliseconds for which events are gathered before they are sent. */
const TOGETHER_MS = 50
/** Events that are sent together at most; of the rest only the number. Nobody reads forty thousand lines a second. */
const TOGETHER = 64

type Reader = (text: Buffer) => void

/** Readers of the same events: what they may see, and what they want to. */
interface Group {
  readonly principal: Principal
  readonly prefix: string
  readonly readers: Set<Reader>
  text: string
  count: number
}

/**
 * What happens to the locks, for everybody who watches. An event is put into words once for all who see the same, and
 * goes out together with those that follow it, as far as anybody could follow: words and writes for each reader and each
 * event took nearly all of a busy server's time.
 */
export class EventHub {
  private readonly registry: Pick<ClaimRegistry, 'listen'>
  /**
   * By the hashes of their prefixes: an event is looked up under each beginning of its name, however many there are who
   * watch others. A hash is that of the beginning before it and one character more. To look up the beginnings themselves
   * would be to read a long name as often as there are lengths.
   */
  private readonly groups = new Map<number, Set<Group>>()
  /** Of the groups: how many of each, and the shortest first. */
  private readonly ofLength = new Map<number, number>()
  private lengths: readonly number[] = []
  private readonly waiting = new Set<Group>()
  private timer: NodeJS.Timeout | undefined
  private stopListening: (() => void) | null = null

  constructor(registry: Pick<ClaimRegistry, 'listen'>) {
    this.registry = registry
  }

  add(principal: Principal, prefix: string, reader: Reader): () => void {
    const hash = hashed(prefix)
    let together = this.groups.get(hash)
    if (together === undefined) this.groups.set(hash, (together = new Set<Group>()))
    let group = [...together].find((one) => one.principal === principal && one.prefix === prefix)
    if (group === undefined) {
      together.add((group = { principal, prefix, readers: new Set<Reader>(), text: '', count: 0 }))
      this.count(prefix.length, 1)
    }
    group.readers.add(reader)
    this.stopListening ??= this.registry.listen((activity) => this.hear(activity))
    return () => this.remove(group, reader)
  }

  private hear({ kind, ...facts }: Activity): void {
    const { name } = facts
    let text = ''
    let hash = NOTHING
    let at = 0
    for (const length of this.lengths) {
      if (length > name.length) break
      hash = hashed(name, { hash, from: at, to: length })
      at = length
      const together = this.groups.get(hash)
      if (together === undefined) continue
      const beginning = name.slice(0, length)
      for (const group of together) {
        if (group.prefix !== beginning || !group.principal.may('read', name)) continue
        this.waiting.add(group)
        group.count++
        if (group.count > TOGETHER) continue
        if (text === '') text = `event: ${kind}\ndata: ${JSON.stringify(facts)}\n\n`
        group.text += text
      }
    }
    if (this.waiting.size > 0) this.timer ??= setTimeout(() => this.flush(), TOGETHER_MS)
  }

  /** Sends what has been gathered. */
  flush(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    for (const group of this.waiting) {
      const missed = group.count - TOGETHER
      const rest = missed > 0 ? `event: missed\ndata: {"count":${missed}}\n\n` : ''
      const bytes = Buffer.from(group.text + rest)
      group.text = ''
      group.count = 0
      for (const reader of group.readers) reader(bytes)
    }
    this.waiting.clear()
  }

  private count(length: number, by: 1 | -1): void {
    const count = (this.ofLength.get(length) ?? 0) + by
    if (count === 0) this.ofLength.delete(length)
    else this.ofLength.set(length, count)
    if (this.ofLength.size !== this.lengths.length)
      this.lengths = [...this.ofLength.keys()].sort((one, other) => one - other)
  }

  private remove(group: Group, reader: Reader): void {
    group.readers.delete(reader)
    if (group.readers.size > 0) return
    const hash = hashed(group.prefix)
    const together = this.groups.get(hash)
    if (together?.delete(group) === true) this.count(group.prefix.length, -1)
    if (together?.size === 0) this.groups.delete(hash)
    if (this.groups.size > 0) return
    this.stopListening?.()
    this.stopListening = null
    clearTimeout(this.timer)
    this.timer = undefined
  }
}

/** FNV-1a. Two texts may have the same one: who finds something by it looks at the text. */
const NOTHING = 0x811c9dc5
const FACTOR = 0x01000193

function hashed(text: string, { hash, from, to } = { hash: NOTHING, from: 0, to: text.length }): number {
  let sum = hash
  for (let at = from; at < to; at++) sum = Math.imul(sum ^ text.charCodeAt(at), FACTOR)
  return sum
}
