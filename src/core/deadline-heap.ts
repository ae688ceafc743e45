/** Something with a time, which stands in at most one heap. The fields are the heap's: nobody else writes them. */
export class HeapEntry {
  at = 0
  /** Where it stands in the heap; -1 while in none. */
  slot = -1
  /** Which of those of one time came first. */
  order = 0
}

/**
 * The earliest first, of equals the one that was added first. Adding and removing cost the logarithm of the size at most, and next to
 * nothing for what comes last: most deadlines of a program are of one length, so that is where they are added.
 */
export class DeadlineHeap<T extends HeapEntry> {
  private readonly entries: T[] = []
  /** How many were added so far: what is added now comes after all of these. */
  added = 0

  get size(): number {
    return this.entries.length
  }

  get first(): T | undefined {
    return this.entries[0]
  }

  /** Only what stands in no heap. */
  add(entry: T, at: number): void {
    entry.at = at
    entry.order = this.added++
    this.entries.push(entry)
    this.rise(entry, this.entries.length - 1)
  }

  /** Only what stands in this one. */
  remove(entry: T): void {
    const { slot } = entry
    entry.slot = -1
    const last = this.entries.pop()
    if (last === undefined || last === entry) return
    // It comes from the bottom, but perhaps from another branch, where things are earlier.
    if (slot > 0 && isBefore(last, this.at((slot - 1) >> 1))) this.rise(last, slot)
    else this.sink(last, slot)
  }

  private rise(entry: T, from: number): void {
    let slot = from
    while (slot > 0) {
      const above = (slot - 1) >> 1
      const parent = this.at(above)
      if (!isBefore(entry, parent)) break
      this.put(parent, slot)
      slot = above
    }
    this.put(entry, slot)
  }

  private sink(entry: T, from: number): void {
    const { length } = this.entries
    let slot = from
    for (let below = 2 * slot + 1; below < length; below = 2 * slot + 1) {
      let child = this.at(below)
      if (below + 1 < length && isBefore(this.at(below + 1), child)) child = this.at(++below)
      if (!isBefore(child, entry)) break
      this.put(child, slot)
      slot = below
    }
    this.put(entry, slot)
  }

  private put(entry: T, slot: number): void {
    this.entries[slot] = entry
    entry.slot = slot
  }

  private at(slot: number): T {
    return this.entries[slot] as T
  }
}

function isBefore(a: HeapEntry, b: HeapEntry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}
