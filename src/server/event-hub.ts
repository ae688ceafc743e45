import type { Activity, Book } from './book.ts'
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
  private readonly book: Book
  private readonly groups = new Map<Principal, Map<string, Group>>()
  private readonly waiting = new Set<Group>()
  private timer: NodeJS.Timeout | undefined
  private stopListening: (() => void) | null = null

  constructor(book: Book) {
    this.book = book
  }

  add(principal: Principal, prefix: string, reader: Reader): () => void {
    let byPrefix = this.groups.get(principal)
    if (byPrefix === undefined) this.groups.set(principal, (byPrefix = new Map<string, Group>()))
    let group = byPrefix.get(prefix)
    if (group === undefined)
      byPrefix.set(prefix, (group = { principal, prefix, readers: new Set<Reader>(), text: '', count: 0 }))
    group.readers.add(reader)
    this.stopListening ??= this.book.listen((activity) => this.hear(activity))
    return () => this.remove(group, reader)
  }

  private hear({ kind, ...facts }: Activity): void {
    let text = ''
    for (const byPrefix of this.groups.values())
      for (const group of byPrefix.values()) {
        if (!facts.name.startsWith(group.prefix) || !group.principal.may('read', facts.name)) continue
        this.waiting.add(group)
        group.count++
        if (group.count > TOGETHER) continue
        if (text === '') text = `event: ${kind}\ndata: ${JSON.stringify(facts)}\n\n`
        group.text += text
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

  private remove(group: Group, reader: Reader): void {
    group.readers.delete(reader)
    if (group.readers.size > 0) return
    const byPrefix = this.groups.get(group.principal)
    byPrefix?.delete(group.prefix)
    if (byPrefix?.size === 0) this.groups.delete(group.principal)
    if (this.groups.size > 0) return
    this.stopListening?.()
    this.stopListening = null
    clearTimeout(this.timer)
    this.timer = undefined
  }
}
