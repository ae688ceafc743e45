import type { Clocks } from '../clocks.ts'

export interface Item {
  readonly value: string
  /** Another one after every change. */
  readonly cas: number
}

interface StoredItem extends Item {
  /** In whole seconds of the server's clock. */
  readonly until: number
}

/** A server like memcached: items that end on whole seconds, may be thrown away at any time, and change only if unchanged. */
export class CasServer {
  private readonly clocks: Clocks
  private readonly items = new Map<string, StoredItem>()
  private changes = 0

  constructor(clocks: Clocks) {
    this.clocks = clocks
  }

  get(key: string): Item | undefined {
    const item = this.items.get(key)
    if (item === undefined || item.until > this.seconds()) return item
    this.items.delete(key)
    return undefined
  }

  /** Only if there is none. */
  add(key: string, value: string, seconds: number): boolean {
    if (this.get(key) !== undefined) return false
    this.put(key, value, seconds)
    return true
  }

  /** Only if nobody has changed it. */
  cas(key: string, value: string, cas: number, seconds: number): 'stored' | 'exists' | 'missing' {
    const item = this.get(key)
    if (item === undefined) return 'missing'
    if (item.cas !== cas) return 'exists'
    this.put(key, value, seconds)
    return 'stored'
  }

  remove(key: string, cas: number): 'removed' | 'exists' | 'missing' {
    const item = this.get(key)
    if (item === undefined) return 'missing'
    if (item.cas !== cas) return 'exists'
    this.items.delete(key)
    return 'removed'
  }

  /** Adds to a number, or begins with `initial`. */
  increase(key: string, by: number, initial: number, seconds: number): number {
    const item = this.get(key)
    const value = item === undefined ? initial : Number(item.value) + by
    this.put(key, String(value), seconds)
    return value
  }

  evict(key: string): void {
    this.items.delete(key)
  }

  empty(): void {
    this.items.clear()
    this.changes = 0
  }

  private put(key: string, value: string, seconds: number): void {
    this.items.set(key, { value, cas: ++this.changes, until: this.seconds() + seconds })
  }

  private seconds(): number {
    return Math.floor(this.clocks.mono() / 1000)
  }
}
