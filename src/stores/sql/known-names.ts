const MOST = 10_000

/**
 * Names that have a row, as far as this process has seen, and the last token that it was given there. Only decides which
 * statement is tried first: with a name that is new to the table an UPDATE would be in vain, with one that is not, an
 * INSERT would.
 */
export class KnownNames {
  private readonly fences = new Map<string, number>()

  has(name: string): boolean {
    return this.fences.has(name)
  }

  /** 0 when it is not known. */
  fenceOf(name: string): number {
    return this.fences.get(name) ?? 0
  }

  add(name: string, fence = 0): void {
    if (this.fences.size >= MOST && !this.fences.has(name)) {
      for (const oldest of this.fences.keys()) {
        this.fences.delete(oldest)
        break
      }
    }
    this.fences.set(name, fence)
  }

  delete(name: string): void {
    this.fences.delete(name)
  }
}
