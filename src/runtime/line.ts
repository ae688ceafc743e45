/** Something that stands in at most one line. The fields are the line's: nobody else writes them. */
export interface InLine<T> {
  previous: T | null
  following: T | null
}

/** First come, first served, with removal from anywhere at no cost. */
export class Line<T extends InLine<T>> {
  length = 0
  first: T | null = null
  private last: T | null = null

  push(entry: T): void {
    entry.previous = this.last
    if (this.last === null) this.first = entry
    else this.last.following = entry
    this.last = entry
    this.length++
  }

  /** Only what stands in this one. */
  remove(entry: T): void {
    const { previous, following } = entry
    if (previous === null) this.first = following
    else previous.following = following
    if (following === null) this.last = previous
    else following.previous = previous
    entry.previous = null
    entry.following = null
    this.length--
  }

  shift(): T | null {
    const { first } = this
    if (first !== null) this.remove(first)
    return first
  }
}
