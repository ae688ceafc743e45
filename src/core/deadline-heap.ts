/** Something with a time, which stands in at most one heap. The fields are the heap's: nobody else writes them. */
export class HeapEntry {
  at = 0
  /** Where it stands in the heap; -1 while in none. */
  slot = -1
  /** Which of those of one time came first. */
  order = 0
}

/** From here on a slot is a place in the line, below it one in the heap. */
const LINE = 2 ** 30
/** So many empty places of a line are not worth closing up. */
const FEW = 256

/**
 * The earliest first, of equals the one that was added first. Most deadlines of a program are of one length, so each comes after those that are
 * there already: these stand in a line, where adding and removing cost nothing. What comes before the last of the line goes to a heap, where
 * both cost the logarithm of its size at most.
 */
export class DeadlineHeap<T extends HeapEntry> {
  private readonly entries: T[] = []
  /**
   * In order, with empty places for those that were removed. Neither the first place, at `head`, nor the last one is empty. Place 0 is never
   * used: an array that becomes empty gives its memory back, and most lines have one entry, again and again.
   */
  private line: (T | undefined)[] = [undefined]
  private head = 1
  /** How many of the places from `head` on are empty. */
  private gaps = 0
  /** How many were added so far: what is added now comes after all of these. */
  added = 0

  get size(): number {
    return this.entries.length + this.line.length - this.head - this.gaps
  }

  get first(): T | undefined {
    const inLine = this.line[this.head]
    const inHeap = this.entries[0]
    if (inLine === undefined) return inHeap
    return inHeap === undefined || isBefore(inLine, inHeap) ? inLine : inHeap
  }

  /** Only what stands in no heap. */
  add(entry: T, at: number): void {
    entry.at = at
    entry.order = this.added++
    const { line } = this
    const last = line[line.length - 1]
    // One that never comes would keep all others out of the line.
    if (at !== Infinity && (last === undefined || at >= last.at)) {
      entry.slot = LINE + line.length
      line.push(entry)
      return
    }
    this.entries.push(entry)
    this.rise(entry, this.entries.length - 1)
  }

  /** Only what stands in this one. */
  remove(entry: T): void {
    const { slot } = entry
    entry.slot = -1
    if (slot >= LINE) return this.leaveLine(slot - LINE)
    const last = this.entries.pop()
    if (last === undefined || last === entry) return
    // It comes from the bottom, but perhaps from another branch, where things are earlier.
    if (slot > 0 && isBefore(last, this.at((slot - 1) >> 1))) this.rise(last, slot)
    else this.sink(last, slot)
  }

  private leaveLine(place: number): void {
    const { line } = this
    if (place === line.length - 1) {
      line.pop()
      while (this.gaps > 0 && line[line.length - 1] === undefined) {
        line.pop()
        this.gaps--
      }
    } else {
      line[place] = undefined
      if (place !== this.head) {
        this.gaps++
      } else {
        this.head++
        while (this.gaps > 0 && line[this.head] === undefined) {
          this.head++
          this.gaps--
        }
      }
    }
    if (this.head + this.gaps > FEW && 2 * (this.head + this.gaps) > line.length) this.closeUp()
    // Only the places before the first one are left.
    else if (this.head === line.length && this.head > 1) this.closeUp()
  }

  private closeUp(): void {
    const line: (T | undefined)[] = [undefined]
    for (const entry of this.line) {
      if (entry === undefined) continue
      entry.slot = LINE + line.length
      line.push(entry)
    }
    this.line = line
    this.head = 1
    this.gaps = 0
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
