/**
 * A map by id that costs one field while it holds one entry. Nearly every lock has one holder, and a hundred thousand
 * Maps of one entry weigh more than all else about their locks.
 */
export class OneOrMany<T extends { readonly id: string }> {
  private one: T | null = null
  private many: Map<string, T> | null = null

  get size(): number {
    return this.many === null ? (this.one === null ? 0 : 1) : this.many.size
  }

  get(id: string): T | undefined {
    if (this.many !== null) return this.many.get(id)
    return this.one?.id === id ? this.one : undefined
  }

  add(entry: T): void {
    if (this.many === null && (this.one === null || this.one.id === entry.id)) {
      this.one = entry
      return
    }
    this.many ??= new Map(this.one === null ? [] : [[this.one.id, this.one]])
    this.one = null
    this.many.set(entry.id, entry)
  }

  delete(id: string): void {
    if (this.one?.id === id) this.one = null
    if (this.many?.delete(id) === true && this.many.size === 0) this.many = null
  }

  /** In order of arrival. What is deleted meanwhile is left out. */
  values(): Iterable<T> {
    if (this.many !== null) return this.many.values()
    return this.one === null ? [] : [this.one]
  }
}
