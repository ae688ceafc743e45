const MOST = 10_000

/**
 * Names that have a row, as far as this process has seen. Only decides which statement is tried first: with a name that is
 * new to the table an UPDATE would be in vain, with one that is not, an INSERT would.
 */
export class KnownNames {
  private readonly names = new Set<string>()

  has(name: string): boolean {
    return this.names.has(name)
  }

  add(name: string): void {
    if (this.names.size >= MOST) {
      for (const oldest of this.names) {
        this.names.delete(oldest)
        break
      }
    }
    this.names.add(name)
  }

  delete(name: string): void {
    this.names.delete(name)
  }
}
