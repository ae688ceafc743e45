const MOST = 1024

/**
 * Whether others want a name too. Whoever asks for one reserves tokens, also in vain; so if the counter has gone further than our
 * own requests took it, somebody else asked since. Only a hint: nothing but the length of a turn hangs on it.
 */
export class Rivals {
  private name = ''
  /** The last token that the counter gave to a request of ours for `name`. */
  private last = 0
  /** The same for names before that; the oldest first. */
  private readonly others = new Map<string, number>()

  /** A request of ours for `count` tokens was given those up to `last`. True: somebody else came in between. */
  seen(name: string, last: number, count: number): boolean {
    const before = this.remember(name, last)
    return before > 0 && last - count > before
  }

  private remember(name: string, last: number): number {
    // Mostly the same as before.
    const before = this.name === name ? this.last : this.swap(name)
    this.last = last
    return before
  }

  private swap(name: string): number {
    const { others } = this
    if (this.name !== '') others.set(this.name, this.last)
    if (others.size > MOST) others.delete(others.keys().next().value as string)
    const before = others.get(name) ?? 0
    others.delete(name)
    this.name = name
    return before
  }
}
